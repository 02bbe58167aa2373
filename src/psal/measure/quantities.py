"""Quantities that a benchmark collects, as a cell of its record."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from psal.measure.record import Cell
from psal.measure.timing import Case, Ratio, Timing, time_interleaved


@dataclass
class Quantities:
    """Measured quantities with their spread, and the times behind them.

    Attributes:
        label: name of the case they belong to, in tables; None for none.
        rows: quantity, what it is compared with, unit, value and spread.
        timings: by group, sample (for instance a pair of frames) and case.
    """

    label: str | None = None
    rows: list[dict[str, Any]] = field(default_factory=list)
    timings: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)

    def add(
        self,
        quantity: str,
        values: Sequence[float],
        *,
        against: str = "",
        unit: str = "",
        value: float | None = None,
    ) -> None:
        """Add a quantity with the minimum and maximum of single values as its spread.

        Args:
            quantity: what was measured.
            values: single measurements.
            against: what it is compared with, if the value is a ratio or a difference.
            unit: unit of the value.
            value: summary of the single measurements; None for their mean.
        """
        self._add(
            quantity, against, unit, statistics.fmean(values) if value is None else value, (min(values), max(values))
        )

    def add_ratios(self, quantity: str, ratios: Sequence[Ratio], *, against: str, unit: str = "") -> None:
        """Add the median of ratios over several samples, with the extreme quartiles as its spread."""
        value = statistics.median(r.value for r in ratios)
        self._add(quantity, against, unit, value, (min(r.low for r in ratios), max(r.high for r in ratios)))

    def _add(self, quantity: str, against: str, unit: str, value: float, spread: tuple[float, float]) -> None:
        self.rows.append(
            {"quantity": quantity, "against": against, "unit": unit, "value": value, "spread": list(spread)}
        )

    def time(self, group: str, sample: str, cases: dict[str, Case], rounds: int) -> dict[str, Timing]:
        """Time cases against each other and keep all single times."""
        timings = time_interleaved(cases, rounds=rounds)
        self.keep_times(group, sample, timings)
        return timings

    def keep_times(self, group: str, sample: str, timings: dict[str, Timing]) -> None:
        """Keep all single times of several cases."""
        kept = self.timings.setdefault(group, {}).setdefault(sample, {})
        kept.update({name: timing.as_json() for name, timing in timings.items()})

    def cell(self, **details: Any) -> Cell:
        """The cell for a record.

        Args:
            details: further measurements, as JSON can hold them.
        """
        label = {"label": self.label} if self.label else {}
        timings = {"timings": self.timings} if self.timings else {}
        return label | {"rows": self.rows} | timings | details
