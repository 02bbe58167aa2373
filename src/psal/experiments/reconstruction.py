"""Tables 2 and 3 of the paper: a frame reconstructed from one ten frames earlier, by every layer."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from psal.data import davis
from psal.data.image_folder import load_square, square
from psal.data.samples import stereo_views
from psal.experiments import paper
from psal.experiments.experiment import Progress
from psal.experiments.layer_cost import LayerSetting, measure
from psal.measure.record import Cell, Record
from psal.measure.table import Table, number
from psal.models.attentions import build_attention, label

LAYERS = ("full-stride10", "local", "linear", "performer", "reformer", "psal1", "psal3", "psal-aggregate")
STRIDES = {64: (1, 2, 5, 10), 128: (1, 2, 5, 10), 256: (1, 2, 5, 10), 512: (10,)}
FRAME_DISTANCE = 10
PATCH_SIZE = 7
TEMPERATURE = 0.01  # squared distance of two patches of 7 × 7 × 3 values that differ by two gray levels
SEED = 0


class ImagePairs:
    """Pairs of an image and its reference.

    Args:
        data: DAVIS's folder; None for the bundled stereo pair.
        count: number of pairs of DAVIS frames.

    Raises:
        psal.data.image_folder.MissingDataError: if the folder is not DAVIS's, or has fewer pairs.
    """

    def __init__(self, data: Path | None, count: int) -> None:
        self._pairs = davis.pairs(data, count, FRAME_DISTANCE) if data else None
        self.names = [f"{p.sequence} {p.number}" for p in self._pairs] if self._pairs else ["stereo pair"]

    def load(self, index: int, size: int) -> tuple[Tensor, Tensor]:
        """The image to reconstruct and its reference, each ``(1, 3, size, size)`` in 0..1."""
        if self._pairs is None:
            left, right = (square(view, size)[None] for view in stereo_views())
            return left, right
        pair = self._pairs[index]
        return load_square(pair.frame, size)[None], load_square(pair.reference, size)[None]


@dataclass(frozen=True)
class ReconstructionExperiment:
    """Reconstruction loss of layers.

    Attributes:
        pairs: the images.
        layers: names for :func:`psal.models.attentions.build_attention`, all at the largest size.
        sizes: sides of the images. Full attention with strides and PSAL 3 are measured at every size.
        threads: number of CPU threads for time and memory.
    """

    pairs: ImagePairs
    layers: Sequence[str]
    sizes: Sequence[int]
    threads: int

    name = "reconstruction"

    @property
    def settings(self) -> dict[str, Any]:
        return {
            "layers": list(self.layers), "sizes": sorted(self.sizes), "pairs": self.pairs.names,
            "patch_size": PATCH_SIZE, "temperature": TEMPERATURE, "threads": self.threads,
        }  # fmt: skip

    @property
    def step_count(self) -> int:
        return len(self._cases()) * len(self.pairs.names) + len(self.layers)

    def _cases(self) -> list[tuple[str, int]]:
        """Layers and sizes."""
        cases = [(name, max(self.sizes)) for name in self.layers]
        for size in sorted(self.sizes):
            cases += [(f"full-stride{stride}", size) for stride in STRIDES.get(size, (1,))] + [("psal3", size)]
        return list(dict.fromkeys(cases))

    def run(self, record: Record, progress: Progress) -> None:
        done = 0
        for name, size in self._cases():
            for index, pair in enumerate(self.pairs.names):
                progress(done, f"{label(name)}, {size}², {pair}")
                record.measure_once(f"{name} {size} {pair}", partial(self._loss, name, index, size))
                done += 1
        largest = max(self.sizes)
        for name in self.layers:
            progress(done, f"{label(name)}, memory")
            setting = LayerSetting(name, largest, channels=3, patch_size=PATCH_SIZE, threads=self.threads)
            record.measure_once(f"{name} {largest} memory", partial(measure, setting))
            done += 1
        progress(done, "")

    def _loss(self, name: str, index: int, size: int) -> Cell:
        image, reference = self.pairs.load(index, size)
        return {"loss": (_reconstruct(name, image, reference) - image).square().mean().item()}

    def draw(self, record: Record, folder: Path) -> list[str]:
        """Plot loss against memory and time at the largest size, and draw the first pair by every layer."""
        from psal.experiments.plots import COSTS, figure, legend, plot_loss_against, save, save_strip

        layers, largest = record.settings["layers"], max(record.settings["sizes"])
        canvas, axes = figure(len(COSTS))
        for axis, cost in zip(axes, COSTS, strict=True):
            points = {
                name: (
                    record.cells[f"{name} {largest} memory"][cost.key],
                    statistics.fmean(_losses(record, name, largest)),
                )
                for name in layers
            }
            plot_loss_against(cost, axis, points, [label(name) for name in layers])
            axis.set_yscale("log")
            axis.set_ylabel(f"loss at {largest}²")
        legend(axes)
        save(canvas, folder / f"{self.name}.png")

        image, reference = self.pairs.load(0, largest)
        images = {"frame": image, "reference": reference}
        images |= {label(name): _reconstruct(name, image, reference) for name in layers}
        save_strip(images, folder / f"{self.name}_strip.png")
        return []


def _reconstruct(name: str, image: Tensor, reference: Tensor) -> Tensor:
    layer = build_attention(name, channels=3, patch_size=PATCH_SIZE, temperature=TEMPERATURE, seed=SEED)
    with torch.no_grad():
        reconstructed: Tensor = layer(image, reference, reference)
    return reconstructed


def _losses(record: Record, name: str, size: int) -> list[float]:
    """Loss of each pair."""
    return [record.cells[f"{name} {size} {pair}"]["loss"] for pair in record.settings["pairs"]]


def tables(record: Record) -> list[Table]:
    """Loss and cost by layer, and full attention with strides against PSAL 3 by size."""
    return [_by_layer(record), _by_size(record)]


def _by_layer(record: Record) -> Table:
    largest = max(record.settings["sizes"])
    rows = []
    for name in record.settings["layers"]:
        cost = record.cells[f"{name} {largest} memory"]
        known = paper.RECONSTRUCTION_LOSS.get(name) if largest == paper.RECONSTRUCTION_SIZE else None
        rows.append(
            [
                label(name),
                _mean_and_deviation(_losses(record, name, largest)),
                f"{cost['peak'] / 1e9:.2f}",
                number(cost["seconds"]),
                f"{known:.4f}" if known else "",
            ]
        )
    title = f"Loss, memory and time at {largest}²"
    return Table(title, ["layer", "loss (standard deviation)", "GB", "seconds", "loss in the paper"], rows)


def _by_size(record: Record) -> Table:
    rows = []
    for size in record.settings["sizes"]:
        psal3 = _losses(record, "psal3", size)
        for stride in STRIDES.get(size, (1,)):
            full = _losses(record, f"full-stride{stride}", size)
            ratio = statistics.fmean(psal3) / statistics.fmean(full)
            known = paper.RECONSTRUCTION_BY_SIZE.get((size, stride), ())
            rows.append(
                [
                    f"{size}²",
                    str(stride),
                    _mean_and_deviation(full),
                    _mean_and_deviation(psal3),
                    f"{ratio:.3f}",
                    " / ".join(f"{loss:.4f}" for loss in known),
                ]
            )
    head = ["size", "stride", "full attention", "PSAL 3", "PSAL 3 / full", "paper: full / PSAL 3"]
    return Table("Loss of full attention with strided keys, and of PSAL 3", head, rows)


def _mean_and_deviation(values: list[float]) -> str:
    deviation = f" ({statistics.stdev(values):.5f})" if len(values) > 1 else ""
    return f"{statistics.fmean(values):.5f}{deviation}"
