"""Type of the callbacks that report progress."""

from collections.abc import Callable

Progress = Callable[[float], None]  # called with the fraction of the work that is done, 0..1
