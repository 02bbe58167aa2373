"""Windows around all holes, packed into one small map: time and memory then grow with the holes, not the image."""

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import ndimage
from torch import Tensor


class Box(NamedTuple):
    """Half-open ranges of rows and columns; a margin may reach beyond the image."""

    top: int
    bottom: int
    left: int
    right: int

    @property
    def height(self) -> int:
        return self.bottom - self.top

    @property
    def width(self) -> int:
        return self.right - self.left


class WindowAtlas(NamedTuple):
    """Windows of an image, packed as in a texture atlas. Maps of the atlas are ``[h, w]``."""

    y: Tensor  # [h, w], row in the image of each atlas pixel, clamped to the image
    x: Tensor  # [h, w], column
    inside: Tensor  # bool [h, w]: part of a window and of the image

    def gather(self, x: Tensor) -> Tensor:
        """Values ``[..., h, w]`` of an image map ``[..., H, W]`` at the atlas pixels."""
        return take(x.flatten(-2), self.y * x.shape[-1] + self.x)


def take(x: Tensor, index: Tensor) -> Tensor:
    """Values ``[..., *shape]`` of ``x [..., n]`` at an index ``[*shape]``, in a third of the time of indexing."""
    return x.index_select(-1, index.flatten()).view(*x.shape[:-1], *index.shape)


def pack_windows(mask: Tensor, margin: int) -> WindowAtlas:
    """Pack windows around all connected parts of a mask.

    Args:
        mask: bool ``[H, W]``, not empty.
        margin: pixels of context on each side of a part.
    """
    height, width = mask.shape
    boxes = _disjoint_boxes(mask.numpy(), margin)
    corners, shape = _pack_shelves(boxes)
    y, x = torch.zeros(shape, dtype=torch.int64), torch.zeros(shape, dtype=torch.int64)
    inside = torch.zeros(shape, dtype=torch.bool)
    for box, (top, left) in zip(boxes, corners, strict=True):
        window = slice(top, top + box.height), slice(left, left + box.width)
        rows, columns = torch.arange(box.top, box.bottom)[:, None], torch.arange(box.left, box.right)[None]
        y[window], x[window] = rows.clamp(0, height - 1), columns.clamp(0, width - 1)
        inside[window] = (rows >= 0) & (rows < height) & (columns >= 0) & (columns < width)
    return WindowAtlas(y, x, inside)


def _pack_shelves(boxes: list[Box]) -> tuple[list[tuple[int, int]], tuple[int, int]]:
    """Shelf packing: sort the boxes by height, in place, then place them in rows.

    Returns:
        the top left corner of each box, and the size (h, w) of the atlas, which is close to a square.
    """
    boxes.sort(key=lambda box: -box.height)
    atlas_width = max(max(box.width for box in boxes), round(sum(box.height * box.width for box in boxes) ** 0.5))
    corners, shelf_top, shelf_height, used = [], 0, 0, 0
    for box in boxes:
        if used + box.width > atlas_width:
            shelf_top, shelf_height, used = shelf_top + shelf_height, 0, 0
        corners.append((shelf_top, used))
        shelf_height = max(shelf_height, box.height)
        used += box.width
    return corners, (shelf_top + shelf_height, atlas_width)


def _disjoint_boxes(mask: NDArray[np.bool_], margin: int) -> list[Box]:
    """Boxes around the connected parts, margin included, merged until none overlap or touch."""
    parts = [tuple(slice(max(0, s.start - margin), s.stop + margin) for s in part) for part in _find_parts(mask)]
    while True:
        covered = np.zeros_like(mask)
        for part in parts:
            covered[part] = True
        merged = _find_parts(covered)
        if len(merged) == len(parts):
            break
        parts = merged
    height, width = mask.shape
    return [
        Box(
            rows.start - margin * (rows.start == 0),
            rows.stop + margin * (rows.stop == height),
            columns.start - margin * (columns.start == 0),
            columns.stop + margin * (columns.stop == width),
        )
        for rows, columns in merged
    ]


def _find_parts(mask: NDArray[np.bool_]) -> list[tuple[slice, ...]]:
    """Bounding boxes of the 8-connected parts."""
    parts: list[tuple[slice, ...]] = ndimage.find_objects(*ndimage.label(mask, structure=np.ones((3, 3))))
    return parts
