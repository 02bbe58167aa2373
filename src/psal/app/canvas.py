"""Pixels and masks of one photograph, as files that are mapped into memory."""

import shutil
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from psal.app.raster import Box, Mask, slices

Layer = Literal["hole", "source"]
LAYERS: tuple[Layer, ...] = ("hole", "source")


class Canvas:
    """A photograph with what is marked on it.

    Pixels and masks are files, so that a large photograph costs no memory while nobody works on it, and a worker reads
    them without a copy.

    Args:
        folder: has ``pixels.npy``, ``(H, W)`` or ``(H, W, C)``, uint8 or uint16; the masks are added to it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pixels: NDArray[Any] = np.load(folder / "pixels.npy", mmap_mode="r+")
        self._masks: dict[Layer, Mask] = {}
        for layer in LAYERS:
            # Written, not left sparse: a write to a mapped hole of a file ends the process if the disk is full.
            np.save(folder / f"{layer}.npy", np.zeros(self.size, bool))
            self._masks[layer] = np.load(folder / f"{layer}.npy", mmap_mode="r+")

    @property
    def size(self) -> tuple[int, int]:
        """(H, W)."""
        return self.pixels.shape[0], self.pixels.shape[1]

    @property
    def bytes(self) -> int:
        """Size of all its files."""
        return self.pixels.nbytes + sum(mask.nbytes for mask in self._masks.values())

    def mask(self, layer: Layer) -> Mask:
        """bool ``[H, W]``, to read and write."""
        return self._masks[layer]

    def crop(self, layer: Layer, box: Box) -> Mask:
        """Copy of a part of a mask."""
        return np.array(self._masks[layer][slices(box)])

    def remove(self) -> None:
        """Remove the files."""
        self._masks.clear()
        shutil.rmtree(self.folder, ignore_errors=True)
