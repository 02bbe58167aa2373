"""What a guide is worth to the fill by patches: none, what a network made of the hole, or a blurred truth."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch.nn.functional as F
from torch import Tensor

from psal.data.image_folder import fingerprint
from psal.experiments.experiment import Progress
from psal.experiments.inpainting.experiment import check_same_weights, identity_of
from psal.experiments.inpainting.fillers import Filler, fill_by_patches, network_filler
from psal.experiments.inpainting.lpips import LPIPS
from psal.experiments.inpainting.metrics import METRICS, difference, summary
from psal.experiments.inpainting.pictures import MaskedPicture, MaskedPictures
from psal.experiments.inpainting.scoring import FillPicture, draw_strip, filled_by, scores_of_pictures
from psal.experiments.networks import Network
from psal.measure.record import Cell, Record
from psal.measure.table import Table
from psal.training.loop import weights_of

BLUR = 8  # factor per side by which the truth is downscaled, and enlarged again
ROWS = {
    "patches": "psal.inpaint",
    "network": "the network",
    "guided by network": "guided by the network",
    "guided by truth": f"guided by the truth at 1/{BLUR}",
}
BASELINE = "patches"
NEEDS_NETWORK = ("network", "guided by network")


@dataclass(frozen=True)
class GuideExperiment:
    """Fill the holes of test pictures with different guides.

    Attributes:
        pictures: the test pictures.
        attention: the attention that the network was trained with.
        run_folder: of its training, or file of weights; None leaves the network out.
        lpips: network for the perceptual distance; None leaves it out.
    """

    pictures: MaskedPictures
    attention: str
    run_folder: Path | None
    lpips: LPIPS | None = None

    name = "inpainting_guide"

    @property
    def settings(self) -> dict[str, Any]:
        return {
            "pictures": len(self.pictures),
            "files": fingerprint(self.pictures.folder, self.pictures.files()),
            "attention": self.attention,
            "blur": BLUR,
            "lpips": self.lpips is not None,
        }

    @property
    def step_count(self) -> int:
        return len(self._fills()) * len(self.pictures)

    def _fills(self) -> dict[str, Callable[[], FillPicture]]:
        """Build the way to fill of each cell, by its name."""
        fills: dict[str, Callable[[], FillPicture]] = {
            "patches": lambda: partial(filled_by, fill_by_patches),
            "guided by truth": lambda: _guided_by_truth,
        }
        if self.run_folder is not None:
            network = partial(network_filler, weights_of(self.run_folder), Network(self.attention, self.attention))
            fills["network"] = lambda: partial(filled_by, network())
            fills["guided by network"] = lambda: partial(filled_by, _guided_by(network()))
        return {name: fills[name] for name in ROWS if name in fills}

    def run(self, record: Record, progress: Progress) -> None:
        """Measure every cell that the record lacks.

        Raises:
            UsageError: if a cell was measured with other weights.
        """
        identity = {} if self.run_folder is None else identity_of(weights_of(self.run_folder))
        check_same_weights(record, dict.fromkeys(NEEDS_NETWORK, identity))
        done = 0
        for name, build in self._fills().items():

            def report(count: int, before: int = done, text: str = ROWS[name]) -> None:
                progress(before + count, text)

            used = identity if name in NEEDS_NETWORK else {}
            record.measure_once(name, partial(self._measure, build, report, used))
            done += len(self.pictures)
        progress(done, "")

    def _measure(self, build: Callable[[], FillPicture], report: Callable[[int], None], identity: Cell) -> Cell:
        return identity | {"scores": scores_of_pictures(build(), self.pictures, self.lpips, report)}

    def draw(self, record: Record, folder: Path) -> list[str]:
        """Draw some pictures filled in each way."""
        path = folder / f"{self.name}_strip.png"
        if self.run_folder is not None and not weights_of(self.run_folder).exists():
            return [f"{path} is not drawn: {weights_of(self.run_folder)} does not exist any more"]
        draw_strip({ROWS[name]: build() for name, build in self._fills().items()}, self.pictures, path)
        return []


def _guided_by(guide: Filler) -> Filler:
    return lambda image, hole: fill_by_patches(image, hole, guide=guide(image, hole))


def _guided_by_truth(picture: MaskedPicture) -> Tensor:
    height, width = picture.truth.shape[2:]
    small = F.interpolate(picture.truth, (max(1, height // BLUR), max(1, width // BLUR)), mode="area")
    blurred = F.interpolate(small, (height, width), mode="bicubic").clamp(0, 1)
    return filled_by(partial(fill_by_patches, guide=blurred), picture)


def tables(record: Record) -> list[Table]:
    """Metrics of each way with their intervals, and how far they are from the fill without a guide."""
    metrics = [name for name in METRICS if name != "lpips" or record.settings["lpips"]]
    heads = ["fill", *(METRICS[name].title for name in metrics)]
    found = {name: record.cells[name]["scores"] for name in ROWS if name in record.cells}
    rows = [[ROWS[name], *(summary(metric, scores[metric]) for metric in metrics)] for name, scores in found.items()]
    differences = [
        [ROWS[name], *(difference(metric, scores[metric], found[BASELINE][metric]) for metric in metrics)]
        for name, scores in found.items()
        if name != BASELINE and BASELINE in found
    ]
    shown = f"{record.settings['pictures']} photographs with masks of their own: mean (95 % interval)"
    return [
        Table(shown, heads, rows),
        Table(f"Difference to {ROWS[BASELINE]}: mean (95 % interval)", heads, differences),
    ]
