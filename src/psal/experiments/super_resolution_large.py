"""Peak memory of the super-resolution network on a large picture in one piece."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import torch

from psal.experiments.experiment import Progress
from psal.measure.memory import peak_of, return_freed_memory
from psal.measure.process import run_in_fresh_process
from psal.measure.record import Cell, Record
from psal.measure.table import Table
from psal.models import CSNLN

SCALES, WIDTHS, DEPTH = (2, 3, 4), (32, 64), 4
SIZE = (1080, 1920)  # height and width
WARM_UP_SIZE = 32


@dataclass(frozen=True)
class LargePictureExperiment:
    """Peak memory of the network with PSAL 3, and the pairs that exact attention would compare in each recurrence.

    Attributes:
        scales: factors per side.
        widths: channels of the feature maps.
        size: height and width of the picture.
        threads: number of CPU threads.
    """

    scales: Sequence[int]
    widths: Sequence[int]
    size: tuple[int, int]
    threads: int

    name = "super_resolution_large"

    @property
    def settings(self) -> dict[str, Any]:
        return {
            "scales": list(self.scales), "widths": list(self.widths), "depth": DEPTH, "size": list(self.size),
            "threads": self.threads,
        }  # fmt: skip

    @property
    def step_count(self) -> int:
        return len(self.scales) * len(self.widths)

    def run(self, record: Record, progress: Progress) -> None:
        for done, (width, scale) in enumerate(product(self.widths, self.scales)):
            progress(done, f"× {scale}, {width} channels")
            record.measure_once(_cell_name(scale, width), partial(self._cell, scale, width))
        progress(self.step_count, "")

    def _cell(self, scale: int, width: int) -> Cell:
        peak = run_in_fresh_process(
            _peak, scale, width, *self.size, threads=self.threads, label=f"× {scale} with {width} channels"
        )
        exact = CSNLN(scale, width=width, depth=1, cross_scale="exact").cell.score_count(*self.size)
        return {"peak": peak, "exact_pairs": exact}

    def draw(self, record: Record, folder: Path) -> list[str]:
        """There is nothing to draw."""
        return []


def _peak(scale: int, width: int, high: int, wide: int) -> int:
    """Called in a fresh process. The weights are random: memory does not depend on them."""
    network = CSNLN(scale, width=width, depth=DEPTH, cross_scale="psal3", residual=True, seed=0)
    with torch.no_grad():
        network(torch.rand(1, 3, WARM_UP_SIZE, WARM_UP_SIZE))
        return_freed_memory()
        return peak_of(lambda: network(torch.rand(1, 3, high, wide)), torch.device("cpu"))


def _cell_name(scale: int, width: int) -> str:
    return f"x{scale} {width}"


def tables(record: Record) -> list[Table]:
    """A row per network, as far as measured."""
    settings, rows = record.settings, []
    high, wide = settings["size"]
    for width, scale in product(settings["widths"], settings["scales"]):
        cell = record.cells.get(_cell_name(scale, width))
        if cell is not None:
            larger = f"{scale * wide:,} × {scale * high:,}"
            peak, pairs = cell["peak"] / 1e9, cell["exact_pairs"] / 1e9
            rows.append([f"{width}", f"× {scale}", larger, f"{peak:.2f}", f"{pairs:,.0f}"])
    head = ["channels", "scale", "pixels of the result", "network with PSAL 3, GB", "10⁹ pairs of exact attention"]
    return [Table(f"Peak memory on {wide:,} × {high:,} pixels", head, rows)]
