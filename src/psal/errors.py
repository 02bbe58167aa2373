"""What a person at the command line did or met, in one line."""


class UsageError(ValueError):
    """What was asked for does not fit together, or cannot work; nothing is lost."""


def describe(error: BaseException) -> str:
    """An error as one line that says what to do."""
    line = " ".join(str(error).split())
    if isinstance(error, MemoryError) or "not enough memory" in line:
        return "there is not enough memory: make the picture smaller, or close other programs"
    return line if isinstance(error, ValueError | OSError) and line else f"{type(error).__name__}: {line}"
