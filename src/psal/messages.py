"""Errors as a message for a person."""


def describe(error: BaseException) -> str:
    """One line that says what went wrong and, where it is known, what to do."""
    line = " ".join(str(error).split())
    if isinstance(error, MemoryError) or "not enough memory" in line:
        return "there is not enough memory: make the picture smaller, or close other programs"
    if type(error).__name__ == "OutOfMemoryError":  # torch's, which need not be loaded here
        return "there is not enough memory on the device: make the picture smaller, or compute on the CPU"
    return line if isinstance(error, ValueError | OSError) and line else f"{type(error).__name__}: {line}"
