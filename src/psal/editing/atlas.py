"""The surroundings of all holes laid out in one small map, so that work and memory go with the holes' size."""

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import ndimage
from torch import Tensor


class Atlas(NamedTuple):
    """Windows of a picture, side by side and shelf by shelf."""

    y: Tensor  # [h, w], where a pixel comes from; the nearest pixel beyond the border
    x: Tensor  # [h, w]
    real: Tensor  # [h, w], bool: a pixel of the picture, and of a window

    def cut(self, x: Tensor) -> Tensor:
        """What a map ``[..., H, W]`` of the picture holds there, ``[..., h, w]``."""
        return x[..., self.y, self.x]


def make_atlas(queries: Tensor, margin: int) -> Atlas:
    """Windows around all parts of a mask.

    Args:
        queries: bool ``[H, W]``, not empty.
        margin: pixels around each part.
    """
    height, width = queries.shape
    boxes = _boxes(queries.numpy(), margin)
    boxes.sort(key=lambda box: box[0] - box[1])  # the highest first
    area = sum((bottom - top) * (right - left) for top, bottom, left, right in boxes)
    shelf_width = max(max(right - left for *_, left, right in boxes), round(area**0.5))
    corners, top_of_shelf, shelf_height, used = [], 0, 0, 0
    for top, bottom, left, right in boxes:
        if used + right - left > shelf_width:
            top_of_shelf, shelf_height, used = top_of_shelf + shelf_height, 0, 0
        corners.append((top_of_shelf, used))
        shelf_height = max(shelf_height, bottom - top)
        used += right - left
    shape = top_of_shelf + shelf_height, shelf_width
    y, x, real = torch.zeros(shape, dtype=torch.int64), torch.zeros(shape, dtype=torch.int64), torch.zeros(shape).bool()
    for (top, bottom, left, right), (to_y, to_x) in zip(boxes, corners, strict=True):
        window = slice(to_y, to_y + bottom - top), slice(to_x, to_x + right - left)
        rows, columns = torch.arange(top, bottom)[:, None], torch.arange(left, right)[None]
        y[window], x[window] = rows.clamp(0, height - 1), columns.clamp(0, width - 1)
        real[window] = (rows >= 0) & (rows < height) & (columns >= 0) & (columns < width)
    return Atlas(y, x, real)


def _boxes(mask: NDArray[np.bool_], margin: int) -> list[tuple[int, int, int, int]]:
    """Top, bottom, left and right of boxes that don't overlap, with the margin; also beyond the picture's border."""
    parts = [tuple(slice(max(0, s.start - margin), s.stop + margin) for s in part) for part in _parts(mask)]
    while True:  # boxes that touch become one, until none do
        filled = np.zeros_like(mask)
        for part in parts:
            filled[part] = True
        merged = _parts(filled)
        if len(merged) == len(parts):
            break
        parts = merged
    height, width = mask.shape
    return [
        (
            rows.start - margin * (rows.start == 0),
            rows.stop + margin * (rows.stop == height),
            columns.start - margin * (columns.start == 0),
            columns.stop + margin * (columns.stop == width),
        )
        for rows, columns in merged
    ]


def _parts(mask: NDArray[np.bool_]) -> list[tuple[slice, ...]]:
    found: list[tuple[slice, ...]] = ndimage.find_objects(*ndimage.label(mask, structure=np.ones((3, 3))))
    return found
