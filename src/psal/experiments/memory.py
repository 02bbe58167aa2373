"""Table 1 of the paper: memory, time and operations of every layer as the maps grow."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from psal.experiments import paper
from psal.experiments.experiment import Progress
from psal.experiments.feature_maps import CHANNELS
from psal.experiments.layer_cost import LayerSetting, gigaflops, measure
from psal.measure.record import Cell, Record
from psal.measure.table import Table, number
from psal.models.attentions import label

LAYERS = (
    *("full-materialized", "full-chunked", "full", "local", "linear", "performer", "reformer"),
    *("psal1", "psal3", "psal-aggregate"),
)
PATCH_SIZE = 7


@dataclass(frozen=True)
class MemoryExperiment:
    """Cost of layers at several sizes.

    Attributes:
        layers: names for :func:`psal.models.attentions.build_attention`.
        sizes: sides of the maps.
        max_gb: a cell that would take more memory is extrapolated from a smaller size.
        max_seconds: a cell that would take longer is extrapolated too.
        threads: number of CPU threads.
        device: "cpu" or "cuda".
    """

    layers: Sequence[str]
    sizes: Sequence[int]
    max_gb: float
    max_seconds: float
    threads: int
    device: str

    name = "memory"

    @property
    def settings(self) -> dict[str, Any]:
        return {
            "layers": list(self.layers), "sizes": sorted(self.sizes), "patch_size": PATCH_SIZE, "channels": CHANNELS,
            "limit_gb": self.max_gb, "patience": self.max_seconds, "threads": self.threads, "device": self.device,
        }  # fmt: skip

    @property
    def step_count(self) -> int:
        return len(self._cases())

    def _cases(self) -> list[LayerSetting]:
        return [
            LayerSetting(name, size, backward=backward, patch_size=PATCH_SIZE, threads=self.threads, device=self.device)
            for name in self.layers
            for backward in (False, True)
            for size in sorted(self.sizes)
        ]

    @staticmethod
    def label(name: str) -> str:
        """Label of a layer."""
        return label(name)

    def run(self, record: Record, progress: Progress) -> None:
        for done, case in enumerate(self._cases()):
            progress(done, f"{self.label(case.attention)}, {case.size}²{', backward' if case.backward else ''}")
            record.measure_once(_cell_name(case.attention, case.size, case.backward), partial(self._cell, case, record))
        progress(self.step_count, "")

    def _cell(self, case: LayerSetting, record: Record) -> Cell:
        counted = {"gigaflops": gigaflops(case)}
        expected = self._extrapolated(case, record)
        if expected and (expected["peak"] > self.max_gb * 1e9 or expected["seconds"] > self.max_seconds):
            return expected | counted
        return measure(case) | counted

    def _extrapolated(self, case: LayerSetting, record: Record) -> Cell | None:
        """Expected cost by the largest smaller size that was measured; None if there is none."""
        names = {size: _cell_name(case.attention, size, case.backward) for size in self.sizes if size < case.size}
        measured = [size for size in names if "computed_from" not in record.cells[names[size]]]
        if not measured:
            return None
        base = max(measured)
        cell, pixels = record.cells[names[base]], (case.size / base) ** 2
        time_growth = pixels**2 if case.attention.startswith(("full", "contextual")) else pixels
        memory_growth = pixels**2 if case.attention.endswith("-materialized") else pixels
        return {
            "peak": cell["peak"] * memory_growth,
            "seconds": cell["seconds"] * time_growth,
            "computed_from": base,
        }

    def draw(self, record: Record, folder: Path) -> list[str]:
        """Plot memory and time of the forward pass against the size; hollow markers are extrapolated."""
        from psal.experiments.plots import COSTS, figure, legend, plot_growth, save

        sizes = record.settings["sizes"]
        canvas, axes = figure(len(COSTS))
        for axis, cost in zip(axes, COSTS, strict=True):
            for name in record.settings["layers"]:
                cells = [record.cells[_cell_name(name, size, False)] for size in sizes]
                values = [cell[cost.key] / cost.unit for cell in cells]
                plot_growth(axis, name, self.label(name), sizes, values, ["computed_from" in cell for cell in cells])
            axis.set_xscale("log", base=2)
            axis.set_yscale("log")
            axis.set_xticks(sizes, [f"{size}²" for size in sizes])
            axis.set_xlabel("pixels")
            axis.set_title(f"{cost.title}, forward", fontsize=10)
        legend(axes)
        save(canvas, folder / f"{self.name}.png")
        return []


def _cell_name(attention: str, size: int, backward: bool) -> str:
    return f"{attention} {size} {'backward' if backward else 'forward'}"


def tables(record: Record) -> list[Table]:
    """Memory, time and operations by layer and size, and the paper's memory."""
    return [
        *cost_tables(record, label),
        Table(
            "Peak memory in GB according to the paper: forward",
            ["layer", *(f"{size}²" for size in paper.MEMORY_SIZES)],
            [[name, *(f"{value:.2f}" for value in values)] for name, values in paper.MEMORY_GB.items()],
        ),
    ]


def cost_tables(record: Record, label: Callable[[str], str]) -> list[Table]:
    """Memory, time and operations by layer and size."""
    return [
        _table("Peak memory in GB: forward (forward and backward)", record, "peak", 1e9, label),
        _table("Seconds: forward (forward and backward)", record, "seconds", 1, label),
        _table("Operations in 10⁹: forward (forward and backward)", record, "gigaflops", 1, label),
    ]


def _table(title: str, record: Record, key: str, unit: float, label: Callable[[str], str]) -> Table:
    layers, sizes = record.settings["layers"], record.settings["sizes"]

    def shown(name: str, size: int, backward: bool) -> str:
        cell = record.cells[_cell_name(name, size, backward)]
        is_extrapolated = "computed_from" in cell and key != "gigaflops"  # operations are always counted
        return ("≈ " if is_extrapolated else "") + number(cell[key] / unit)

    rows = [
        [label(name), *(f"{shown(name, size, False)} ({shown(name, size, True)})" for size in sizes)] for name in layers
    ]
    return Table(title, ["layer", *(f"{size}²" for size in sizes)], rows)
