"""Shapes that were drawn on the picture, as masks: exact for pixel centers, at any size.

Coordinates are (x, y) in pixels of the photograph; the center of the first pixel is (0.5, 0.5).
"""

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

Box = tuple[int, int, int, int]  # top, left, bottom, right; the ends are excluded
Mask = NDArray[np.bool_]


def slices(box: Box) -> tuple[slice, slice]:
    """Rows and columns of a box."""
    return slice(box[0], box[2]), slice(box[1], box[3])


def widened(box: Box, pixels: int, size: tuple[int, int]) -> Box:
    """A box with a margin on all sides, as far as the picture of (H, W) goes."""
    top, left, bottom, right = box
    return max(0, top - pixels), max(0, left - pixels), min(size[0], bottom + pixels), min(size[1], right + pixels)


def within(box: Box, outer: Box) -> tuple[slice, slice]:
    """Rows and columns of a box in an array of one that contains it."""
    return slices((box[0] - outer[0], box[1] - outer[1], box[2] - outer[0], box[3] - outer[1]))


def box_of(points: NDArray[np.float64], margin: float, size: tuple[int, int]) -> Box:
    """Box of (H, W) that contains all points with a margin; it may be empty."""
    height, width = size
    left, top = np.floor(points.min(0) - margin)
    right, bottom = np.ceil(points.max(0) + margin)
    rows = np.clip([top, bottom], 0, height).astype(int)
    columns = np.clip([left, right], 0, width).astype(int)
    return int(rows[0]), int(columns[0]), int(rows[1]), int(columns[1])


def marked_box(mask: NDArray[Any]) -> Box | None:
    """Smallest box that contains all of a mask, or None if it is empty."""
    rows = np.flatnonzero(mask.any(1))
    if not len(rows):
        return None
    columns = np.flatnonzero(mask[rows[0] : rows[-1] + 1].any(0))
    return int(rows[0]), int(columns[0]), int(rows[-1]) + 1, int(columns[-1]) + 1


def stroke(points: NDArray[np.float64], diameter: float, box: Box) -> Mask:
    """Pixels whose centers are within half a diameter of a polyline.

    Every segment covers one span of each row, so the cost goes with the rows of the segments and the area of the box.

    Args:
        points: ``[N, 2]``, x and y.
        diameter: of the brush, in pixels.
        box: part of the picture to draw.
    """
    height, width = box[2] - box[0], box[3] - box[1]
    spans = np.zeros((height, width + 1), np.int32)
    radius = max(diameter, 1.0) / 2
    ends = points if len(points) > 1 else np.repeat(points, 2, 0)
    for start, end in pairwise(ends):
        first = max(box[0], int(np.ceil(min(start[1], end[1]) - radius - 0.5)))
        last = min(box[2], int(np.floor(max(start[1], end[1]) + radius - 0.5)) + 1)
        if first >= last:
            continue
        y = np.arange(first, last) + 0.5
        low, high = _capsule_spans(start, end, radius, y)
        left = np.clip(np.ceil(low - 0.5) - box[1], 0, width)
        right = np.clip(np.floor(high - 0.5) + 1 - box[1], 0, width)
        rows = (y - 0.5 - box[0]).astype(int)
        drawn = np.isfinite(low) & (right > left)
        spans[rows[drawn], left[drawn].astype(int)] += 1
        spans[rows[drawn], right[drawn].astype(int)] -= 1
    return np.cumsum(spans, 1)[:, :-1] > 0


def _capsule_spans(start: Any, end: Any, radius: float, y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """x from and to where rows cut the points within a radius of a segment; infinite where they don't."""
    low, high = np.full(len(y), np.inf), np.full(len(y), -np.inf)
    for x, center in (start, end):
        half = radius**2 - (y - center) ** 2
        reach = np.sqrt(np.maximum(half, 0))
        inside = half >= 0
        low = np.where(inside, np.minimum(low, x - reach), low)
        high = np.where(inside, np.maximum(high, x + reach), high)
    along = end - start
    length = float(np.hypot(*along))
    if length > 0:
        across = np.array([-along[1], along[0]]) * (radius / length)
        corners = [start + across, end + across, end - across, start - across]
        for a, b in zip(corners, [*corners[1:], corners[0]], strict=True):
            if a[1] != b[1]:
                share = (y - a[1]) / (b[1] - a[1])
                cut = (share >= 0) & (share <= 1)
                x = a[0] + share * (b[0] - a[0])
                low = np.where(cut, np.minimum(low, x), low)
                high = np.where(cut, np.maximum(high, x), high)
    return low, high


def polygon(points: NDArray[np.float64], box: Box) -> Mask:
    """Pixels whose centers are inside a closed polygon, by the even-odd rule.

    Args:
        points: ``[N, 2]``, x and y of the corners.
        box: part of the picture to draw.
    """
    height, width = box[2] - box[0], box[3] - box[1]
    flips = np.zeros((height, width + 1), np.uint8)
    for start, end in zip(points, np.roll(points, -1, 0), strict=True):
        (x0, y0), (x1, y1) = sorted([tuple(start), tuple(end)], key=lambda point: point[1])
        first, last = max(box[0], int(np.ceil(y0 - 0.5))), min(box[2], int(np.ceil(y1 - 0.5)))
        if first >= last:
            continue
        y = np.arange(first, last) + 0.5
        x = x0 + (y - y0) * ((x1 - x0) / (y1 - y0))
        np.add.at(flips, (np.arange(first, last) - box[0], np.clip(np.ceil(x - 0.5) - box[1], 0, width).astype(int)), 1)
    inside: Mask = np.cumsum(flips, 1, dtype=np.uint8)[:, :-1] % 2 == 1
    return inside


def grown(mask: Mask, pixels: int) -> Mask:
    """The mask and all pixels within a distance of it."""
    near: Mask = ndimage.distance_transform_edt(~mask) <= pixels
    return near
