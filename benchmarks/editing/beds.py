"""The pictures and holes on which ways of filling are compared."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image

from benchmarks.editing.methods import Mask, Pixels
from benchmarks.editing.photographs import Photographs, crop_and_resize, grid_of_holes, random_holes

WIDTH, HEIGHT = 1280, 800
HOLE_SIDE, HOLE_COUNT = 48, 3
SIDE = 512
TEN_PHOTOGRAPHS = (  # none of them in photos/train
    "highres/images/hifill_1.jpg",
    "highres/images/lomiri_dragonfly.jpg",
    "Urban100/HR/img_019.png",
    "Urban100/HR/img_042.png",
    "Urban100/HR/img_062.png",
    "Urban100/HR/img_096.png",
    "photos/val/bsds_101085.jpg",
    "photos/val/bsds_103070.jpg",
    "photos/val/bsds_130026.jpg",
    "photos/val/bsds_148089.jpg",
)
SMOKE_WIDTH, SMOKE_HEIGHT, SMOKE_HOLE = 160, 100, 12


class MaskedPhotograph(NamedTuple):
    """A photograph and its hole."""

    name: str
    image: Pixels
    hole: Mask


@dataclass(frozen=True)
class Bed:
    """Pictures of one kind.

    Attributes:
        title: name of the table.
        pictures: yields them.
        slow_count: how many of them a slow method fills.
    """

    title: str
    pictures: Callable[[Photographs], Iterator[MaskedPhotograph]]
    slow_count: int


def eight_holes(photographs: Photographs) -> Iterator[MaskedPhotograph]:
    width, height = (SMOKE_WIDTH, SMOKE_HEIGHT) if photographs.max_side else (WIDTH, HEIGHT)
    for index, path in enumerate(photographs.files("highres/images")):
        yield MaskedPhotograph(
            path.stem, crop_and_resize(path, width, height), grid_of_holes(width, height, seed=index)
        )


def three_holes(photographs: Photographs) -> Iterator[MaskedPhotograph]:
    for index, name in enumerate(TEN_PHOTOGRAPHS[: photographs.max_count]):
        path = photographs.data / name
        if photographs.max_side or name.startswith("photos"):
            image = photographs.load(path)
        else:
            image = crop_and_resize(path, SIDE, SIDE)
        height, width = image.shape[:2]
        side = SMOKE_HOLE if photographs.max_side else HOLE_SIDE
        yield MaskedPhotograph(path.stem, image, random_holes(width, height, side, HOLE_COUNT, seed=index))


def scenes(photographs: Photographs, folder: str) -> Iterator[MaskedPhotograph]:
    for path in photographs.files(f"scenes/{folder}/images"):
        image = photographs.load(path)
        yield MaskedPhotograph(path.stem, image, _mask_of(path, image))


def _mask_of(path: Path, image: Pixels) -> Mask:
    """The mask of the same name, reduced like the picture."""
    with Image.open(path.parents[1] / "masks" / f"{path.stem}.png") as file:
        mask = file.convert("L").resize((image.shape[1], image.shape[0]), Image.Resampling.NEAREST)
    found: Mask = np.asarray(mask) > 127
    return found


BEDS = {
    "eight_holes": Bed(f"Eight holes of 100² in {WIDTH:,} × {HEIGHT}", eight_holes, slow_count=1),
    "three_holes": Bed(
        f"Three holes of {HOLE_SIDE}² in photographs of about {SIDE} pixels", three_holes, slow_count=10
    ),
    "objects": Bed("Masks of objects, 512 pixels", lambda found: scenes(found, "places512_object"), slow_count=3),
    "free_form": Bed("Free-form masks, 256²", lambda found: scenes(found, "places256_freeform"), slow_count=4),
}
