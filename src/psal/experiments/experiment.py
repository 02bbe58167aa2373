"""The interface that ``psal bench`` expects of an experiment."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from psal.measure.record import Record

Progress = Callable[[int, str], None]  # called with the steps done so far and a description of the next one


class Experiment(Protocol):
    """One experiment with its settings chosen."""

    @property
    def name(self) -> str:
        """Name of its results: ``NAME.json``, and plots whose names begin with it."""

    @property
    def settings(self) -> dict[str, Any]:
        """Settings for the record. Cells measured with other settings are not comparable."""

    @property
    def step_count(self) -> int:
        """Number of steps that :meth:`run` reports."""

    def run(self, record: Record, progress: Progress) -> None:
        """Measure every cell that the record lacks."""

    def draw(self, record: Record, folder: Path) -> list[str]:
        """Draw plots and pictures into a folder; returns warnings."""
