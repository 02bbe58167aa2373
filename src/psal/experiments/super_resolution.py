"""Table 7 of the paper: one super-resolution network with several cross-scale attentions, and controls."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from psal import upscale
from psal.data.image_folder import list_pictures, names_of
from psal.errors import UsageError
from psal.experiments.experiment import Progress
from psal.experiments.super_resolution_cost import CostSetting, measure
from psal.experiments.super_resolution_tables import (
    WITHOUT_NETWORK,
    Row,
    cost_name,
    measured_rows,
    quality_name,
    rows_of,
    title,
)
from psal.measure.record import Cell, Record
from psal.models.csnln.attentions import check_cross_scale, check_in_scale
from psal.models.csnln.weights import UpscalerFile, read_upscaler
from psal.training.upscale import bicubic, load_pair, quality

REGIONS = ("crop", "whole")
PARTS = ("quality", "cost")
SEED = 0


@dataclass(frozen=True)
class SuperResolutionExperiment:
    """Networks with each cross-scale attention, on test pictures.

    A network that was trained with exact attention is tested with all of them, on the same weights. A network that was
    trained with another one is tested with that alone: weights can adapt to a control, so both ways are of interest.

    Attributes:
        weights: files for :func:`psal.models.csnln.weights.load_upscaler`, one per scale and attention in training.
        data: folder of the test pictures.
        attentions: names of the cross-scale attentions to measure.
        crop: side of the crop in the middle of each downscaled picture, on which all attentions are compared. Exact
            attention does not run on whole pictures.
        in_scale: in-scale attention of all networks; None for the one of their training.
        regions: of "crop" and "whole".
        parts: of "quality" and "cost" (time and memory).
        threads: number of CPU threads for time and memory.
        picture_set: name of the test pictures, which becomes part of that of the results file; None leaves it out.

    Raises:
        UsageError: if a file, a name or the folder is not as described.
    """

    weights: Sequence[Path]
    data: Path
    attentions: Sequence[str]
    crop: int
    in_scale: str | None = None
    regions: Sequence[str] = REGIONS
    parts: Sequence[str] = PARTS
    threads: int = 2
    picture_set: str | None = None

    def __post_init__(self) -> None:
        if self.picture_set is not None and not self.picture_set.isalnum():
            raise UsageError(f"a name of letters and digits is needed for the pictures, got {self.picture_set!r}")
        for attention in self.attentions:
            check_cross_scale(attention)
        if self.in_scale is not None:
            check_in_scale(self.in_scale)
        found = [(file.scale, file.cross_scale) for file in self._files()]
        for scale, trained in found:
            if found.count((scale, trained)) > 1:
                raise UsageError(f"two of the networks enlarge by {scale} and were trained with {trained}: give one")
        list_pictures(self.data)

    @property
    def name(self) -> str:
        return "super_resolution" + (f"_{self.picture_set.lower()}" if self.picture_set else "")

    @property
    def settings(self) -> dict[str, Any]:
        return {
            "networks": [
                {
                    "scale": file.scale, "width": file.width, "depth": file.depth, "trained": file.cross_scale,
                    "in_scale": self.in_scale or file.in_scale,
                    "sha256": hashlib.sha256(path.read_bytes()).hexdigest()[:16],
                }
                for path, file in zip(self.weights, self._files(), strict=True)
            ],
            "pictures": list(self._pictures()), "crop": self.crop,
        }  # fmt: skip

    @property
    def step_count(self) -> int:
        return len(self._rows()) * (len(self._pictures()) * ("quality" in self.parts) + ("cost" in self.parts))

    def run(self, record: Record, progress: Progress) -> None:
        done = 0
        for row, region in self._rows():
            if "quality" in self.parts:
                load = cache(partial(self._network, row))
                for name, path in self._pictures().items():
                    progress(done, f"{title(row)}, {region}, {name}")
                    record.measure_once(
                        quality_name(row, region, name), partial(self._quality, load, row, path, region)
                    )
                    done += 1
            if "cost" in self.parts:
                progress(done, f"{title(row)}, {region}, time and memory")
                if row.tested not in WITHOUT_NETWORK:
                    record.measure_once(cost_name(row, region), partial(self._cost, row, region))
                done += 1
        progress(done, "")

    def _pictures(self) -> dict[str, Path]:
        return names_of(self.data, list_pictures(self.data))

    def _files(self) -> list[UpscalerFile]:
        return [read_upscaler(path) for path in self.weights]

    def _rows(self) -> list[tuple[Row, str]]:
        """Rows and regions, without exact attention on whole pictures."""
        rows = rows_of([(file.scale, file.cross_scale) for file in self._files()], self.attentions)
        return [(row, region) for region in self.regions for row in rows if (row.tested, region) != ("exact", "whole")]

    def _path(self, row: Row) -> Path:
        [path] = [
            path
            for path, file in zip(self.weights, self._files(), strict=True)
            if (file.scale, file.cross_scale) == (row.scale, row.trained)
        ]
        return path

    def _network(self, row: Row) -> torch.nn.Module:
        return read_upscaler(self._path(row)).build(row.tested, self.in_scale, SEED)

    def _quality(self, load: Callable[[], torch.nn.Module], row: Row, path: Path, region: str) -> Cell:
        small, original = load_pair(path, row.scale, self.crop if region == "crop" else None)
        return _label("quality", region) | quality(_enlarge(small, row, load), original, row.scale)._asdict()

    def _cost(self, row: Row, region: str) -> Cell:
        setting = CostSetting(
            str(self._path(row)), str(list_pictures(self.data)[0]), row.tested, self.in_scale,
            self.crop if region == "crop" else None, self.threads,
        )  # fmt: skip
        return _label("time and memory", region) | measure(setting)

    def draw(self, record: Record, folder: Path) -> list[str]:
        """Draw the first picture's crop, enlarged in each way, for each scale."""
        from psal.experiments.plots import save_strip

        path = list_pictures(self.data)[0]
        rows = measured_rows(record)
        for scale in sorted({row.scale for row in rows}):
            small, original = load_pair(path, scale, self.crop)
            images: dict[str, Tensor] = {"original": original[None].float() / 255}
            for row in (row for row in rows if row.scale == scale):
                enlarged = _enlarge(small, row, partial(self._network, row))
                images[title(row)] = enlarged[None].clamp(0, 1)
            save_strip(images, folder / f"{self.name}_x{scale}_strip.png")
        return []


def _label(part: str, region: str) -> Cell:
    """The label that names these cells where a table tells how they were measured."""
    return {"label": f"{part}, {'crops' if region == 'crop' else 'whole pictures'}"}


def _enlarge(small: Tensor, row: Row, load: Callable[[], torch.nn.Module]) -> Tensor:
    """Enlarge ``(3, h, w)`` in 0..1 in the way of a row."""
    if row.tested == "bicubic":
        return bicubic(small, row.scale)
    if row.tested == "patches":
        large: Tensor = upscale(small, row.scale, seed=SEED)
        return large
    with torch.no_grad():
        enlarged: Tensor = load()(small[None])[0]
    return enlarged
