"""Memory of the whole inpainting network on large pictures."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from psal.experiments.experiment import Progress
from psal.measure.memory import peak_of, return_freed_memory
from psal.measure.process import run_in_fresh_process
from psal.measure.record import Cell, Record
from psal.measure.table import Table
from psal.models.inpainting.attentions import label
from psal.models.inpainting.filling import attention_of, fill, needed_memory
from psal.models.inpainting.generator import STRIDE
from psal.models.inpainting.weights import build_generator

SIZES = ((2700, 3300), (3300, 3300))  # height and width; the paper's figure, and its largest
HOLE, HOLE_DISTANCE = 128, 600  # pixels
ATTENTION = "psal3"
REFUSED = "contextual-materialized"
WARM_UP_SIZE = 64


@dataclass(frozen=True)
class LargePicturesExperiment:
    """Peak memory of the network with PSAL 3 in one piece, and of its attention layer alone.

    Attributes:
        sizes: height and width of the pictures.
        width: channels of the network's first layer.
        threads: number of CPU threads.
    """

    sizes: Sequence[tuple[int, int]]
    width: int
    threads: int

    name = "inpainting_large"

    @property
    def settings(self) -> dict[str, Any]:
        return {"sizes": [list(size) for size in self.sizes], "width": self.width, "threads": self.threads}

    @property
    def step_count(self) -> int:
        return len(self.sizes)

    def run(self, record: Record, progress: Progress) -> None:
        for done, size in enumerate(self.sizes):
            progress(done, _size_text(size))
            record.measure_once(_cell_name(size), partial(self._cell, size))
        progress(self.step_count, "")

    def _cell(self, size: tuple[int, int]) -> Cell:
        run = partial(run_in_fresh_process, threads=self.threads, label=f"the network on {_size_text(size)}")
        network = run(_peak_of_network, *size, self.width)
        layer = run(_peak_of_layer, *size, self.width)
        refused = needed_memory(build_generator(REFUSED, self.width), *size)
        return {"peak": network, "attention_peak": layer, "refused_peak": refused}

    def draw(self, record: Record, folder: Path) -> list[str]:
        """There is nothing to draw."""
        return []


def _peak_of_network(height: int, width: int, channels: int) -> int:
    """Called in a fresh process. The weights are random: memory does not depend on them."""
    network = build_generator(ATTENTION, channels, seed=0).eval()
    small = _picture(WARM_UP_SIZE, WARM_UP_SIZE)
    fill(network, *small)
    return_freed_memory()
    return peak_of(lambda: fill(network, *_picture(height, width)), torch.device("cpu"))


def _peak_of_layer(height: int, width: int, channels: int) -> int:
    """Called in a fresh process."""
    layer = attention_of(build_generator(ATTENTION, channels, seed=0))
    assert layer is not None

    def attend(height: int, width: int) -> None:
        with torch.no_grad():
            features = torch.rand(1, 4 * channels, -(-height // STRIDE), -(-width // STRIDE))
            layer(features, features, features)

    attend(WARM_UP_SIZE, WARM_UP_SIZE)
    return_freed_memory()
    return peak_of(lambda: attend(height, width), torch.device("cpu"))


def _picture(height: int, width: int) -> tuple[Tensor, Tensor]:
    """A random picture with holes of 128 × 128 pixels all over it."""
    hole = torch.zeros(1, 1, height, width, dtype=torch.bool)
    for top in range(HOLE // 4, height - HOLE, HOLE_DISTANCE):
        for left in range(HOLE // 4, width - HOLE, HOLE_DISTANCE):
            hole[..., top : top + HOLE, left : left + HOLE] = True
    if min(height, width) <= HOLE:
        hole[..., : height // 2, : width // 2] = True
    return torch.rand(1, 3, height, width), hole


def _cell_name(size: tuple[int, int]) -> str:
    return f"{size[0]} {size[1]}"


def _size_text(size: Sequence[int]) -> str:
    return f"{size[1]:,} × {size[0]:,}"


def tables(record: Record) -> list[Table]:
    """Peak memory by size of the picture."""
    rows = []
    for height, width in record.settings["sizes"]:
        cell = record.cells[_cell_name((height, width))]
        layer, whole = cell["attention_peak"] / 1e9, cell["peak"] / 1e9
        rows.append(
            [_size_text((height, width)), f"{whole:.2f}", f"{layer:.2f}", f"≥ {cell['refused_peak'] / 1e9:,.0f}"]
        )
    head = ["pixels", f"network with {label(ATTENTION)}, GB", "its attention layer alone, GB", f"{label(REFUSED)}, GB"]
    return [Table(f"Peak memory of the network (width {record.settings['width']})", head, rows)]
