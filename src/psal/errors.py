"""Exceptions of the library."""


class UsageError(ValueError):
    """The request cannot work: its arguments or inputs do not fit. Nothing was written."""
