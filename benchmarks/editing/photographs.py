"""Photographs to measure the edits on."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from PIL import Image

from benchmarks.editing.methods import Mask, Pixels
from psal.data import davis

FRAME_DISTANCE = 10


@dataclass(frozen=True)
class Photographs:
    """The data folder, and how much of it is used.

    Attributes:
        data: folder with highres, scenes, Urban100 and DAVIS in it.
        max_count: number of photographs per group; None for all.
        max_side: larger photographs are reduced to this, for a smoke test; None for their own size.
    """

    data: Path
    max_count: int | None = None
    max_side: int | None = None

    def files(self, folder: str) -> list[Path]:
        """Files of a folder, sorted.

        Raises:
            FileNotFoundError: if there are none.
        """
        found = sorted((self.data / folder).glob("*"))
        if not found:
            raise FileNotFoundError(f"no pictures in {self.data / folder}")
        return found[: self.max_count]

    def load(self, path: Path) -> Pixels:
        image = Image.open(path).convert("RGB")
        if self.max_side is not None:
            image.thumbnail((self.max_side, self.max_side))
        return np.asarray(image)

    def file(self, path: str, folder: Path) -> str:
        """A file of the data folder; for a smoke test, a reduced copy of it.

        Args:
            path: below the data folder.
            folder: where the copy is written.
        """
        if self.max_side is None:
            return str(self.data / path)
        copy = folder / f"{Path(path).parent.name}.png"
        with Image.open(self.data / path) as image:
            image.thumbnail((self.max_side, self.max_side))
            image.save(copy)
        return str(copy)

    def video_pairs(self) -> Iterator[tuple[Pixels, Pixels]]:
        """Frames 10, 20, … of each sequence of DAVIS's val split, each with the frame 10 before as its reference."""
        root = self.data / "DAVIS"
        for name in sorted(davis.sequences(root, "val"))[: self.max_count]:
            files = davis.frames(root, name)[::FRAME_DISTANCE]
            for first, second in list(pairwise(files))[: self.max_count]:
                yield self.load(second), self.load(first)


def crop_and_resize(path: Path, width: int, height: int) -> Pixels:
    """The largest centered part with that aspect ratio, resized."""
    image = Image.open(path).convert("RGB")
    scale = min(image.width / width, image.height / height)
    w, h = width * scale, height * scale
    left, top = (image.width - w) / 2, (image.height - h) / 2
    return np.asarray(image.resize((width, height), Image.Resampling.BICUBIC, box=(left, top, left + w, top + h)))


def grid_of_holes(width: int, height: int, seed: int) -> Mask:
    """Eight square holes on a grid of 2 × 4, with random offsets; 100 pixels wide at 1,280 × 800."""
    hole = np.zeros((height, width), bool)
    offset = np.random.default_rng(seed)
    side = height // 8
    for top in (100, 450):
        for left in (60, 360, 660, 960):
            y, x = (top + offset.integers(100)) * height // 800, (left + offset.integers(80)) * width // 1280
            hole[y : y + side, x : x + side] = True
    return hole


def random_holes(width: int, height: int, side: int, count: int, seed: int) -> Mask:
    """Square holes at random positions, at least 8 pixels from the border."""
    hole = np.zeros((height, width), bool)
    generator = np.random.default_rng(seed)
    for _ in range(count):
        y, x = generator.integers(8, height - side - 8), generator.integers(8, width - side - 8)
        hole[y : y + side, x : x + side] = True
    return hole
