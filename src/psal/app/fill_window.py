"""Which part of a photograph a fill looks at: its cost goes with the hole, not with the photograph."""

import numpy as np
from scipy import ndimage

from psal.app.raster import Box, Mask, widened

MIN_MARGIN = 384  # pixels around a hole that it may be filled from, at least
MARGIN_FACTOR = 1.5  # of the hole's larger side


def fill_windows(hole: Mask, box: Box, size: tuple[int, int], source: Box | None = None) -> list[Box]:
    """Windows of a photograph that contain the hole and its surroundings; no two of them overlap.

    Args:
        hole: bool, what is marked in the box.
        box: part of the photograph that contains all of the hole.
        size: (H, W) of the photograph.
        source: box that the fill is taken from; it belongs to every window.

    Returns:
        The windows; the only one is the whole photograph if it is not much larger.
    """
    labels, _ = ndimage.label(hole, np.ones((3, 3)))
    windows: list[Box] = []
    for rows, columns in ndimage.find_objects(labels):
        top, left = box[0] + rows.start, box[1] + columns.start
        part = top, left, box[0] + rows.stop, box[1] + columns.stop
        windows = _merged(windows, _with_margin(part, size, source))
    return sorted(windows)


def _with_margin(box: Box, size: tuple[int, int], source: Box | None) -> Box:
    margin = int(max(MIN_MARGIN, MARGIN_FACTOR * max(box[2] - box[0], box[3] - box[1])))
    window = widened(box, margin, size)
    return union(window, source) if source else window


def _merged(windows: list[Box], new: Box) -> list[Box]:
    """Add a window; those that overlap become one, until none do."""
    while True:
        touching = [window for window in windows if _overlap(window, new)]
        if not touching:
            return [*windows, new]
        windows = [window for window in windows if window not in touching]
        for window in touching:
            new = union(new, window)


def _overlap(a: Box, b: Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def union(a: Box, b: Box) -> Box:
    """Smallest box that contains both."""
    return min(a[0], b[0]), min(a[1], b[1]), max(a[2], b[2]), max(a[3], b[3])
