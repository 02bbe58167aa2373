"""The task of filling what is marked on a photograph: its cost goes with the hole, not with the photograph."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import ndimage

from psal.app.raster import Box, Mask, slices, widened, within
from psal.app.steps import unpack
from psal.editing.registry import EDITS
from psal.progress import Progress
from psal.seeds import add_to_seed

MIN_MARGIN = 384  # pixels around a hole that it may be filled from, at least
MARGIN_FACTOR = 1.5  # of the hole's larger side
WINDOW_SEEDS = 7919  # distance between the seeds of two windows of a fill


def fill(
    *, pixels: str, hole: list[Any], area: list[Any], before: str | None, source: list[Any] | None,
    guide: str | None, feather: int, seed: int, threads: int, out: str, progress: Progress,
) -> dict[str, Any]:  # fmt: skip
    """Fill what is marked, window by window.

    Args:
        pixels: array file of the photograph.
        hole, area: box and file of the bits of what is marked, and of what the fill changes.
        before: file of what the area had before, if the photograph shows an earlier fill of it.
        source: box and file of the bits of what the fill may be taken from; None for everything.
        guide: array file of a rough fill to follow, or None.
        feather: pixels over which the fill fades into the photograph.
        seed: of the search.
        threads: to use.
        out: file for the new values, in the order of the area's pixels.
        progress: called with the share that is done.
    """
    torch.set_num_threads(threads)
    photo: NDArray[Any] = np.load(pixels, mmap_mode="c")  # changes stay in memory
    size, box = photo.shape[:2], _box(area[0])
    marked, changed = _whole_mask(size, *hole), unpack(Path(area[1]), box)
    if before is not None:
        photo[slices(box)][changed] = np.load(before)
    layers: dict[str, NDArray[Any]] = {}  # keyword arguments of inpaint that are as large as the photograph
    if source is not None:
        layers["source_mask"] = _whole_mask(size, *source)
    if guide is not None:
        layers["guide"] = np.load(guide, mmap_mode="r")
    windows = fill_windows(changed, box, size, _box(source[0]) if source else None)
    counts = [int(marked[slices(window)].sum()) for window in windows]
    made = np.array(photo[slices(box)])
    for number, window in enumerate(windows):
        part = slices(window)
        done, own = sum(counts[:number]) / sum(counts), counts[number] / sum(counts)
        filled = EDITS["inpaint"].function(
            np.array(photo[part]), marked[part], feather=feather, seed=add_to_seed(seed, WINDOW_SEEDS * number),
            progress=partial(_report, progress, 0.97 * done, 0.97 * own),
            **{name: np.array(layer[part]) for name, layer in layers.items()},
        )  # fmt: skip
        both = _common(box, window)
        made[within(both, box)] = filled[within(both, window)]
    np.save(out, made[changed])
    return {}


def _report(progress: Progress, done: float, own: float, share: float) -> None:
    progress(done + own * share)


def _whole_mask(size: tuple[int, int], box: list[int], bits: str) -> NDArray[np.bool_]:
    mask = np.zeros(size, bool)
    mask[slices(_box(box))] = unpack(Path(bits), _box(box))
    return mask


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
    return _union(window, source) if source else window


def _merged(windows: list[Box], new: Box) -> list[Box]:
    """Add a window; those that overlap become one, until none do."""
    while True:
        touching = [window for window in windows if _overlap(window, new)]
        if not touching:
            return [*windows, new]
        windows = [window for window in windows if window not in touching]
        for window in touching:
            new = _union(new, window)


def _overlap(a: Box, b: Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def _union(a: Box, b: Box) -> Box:
    """Smallest box that contains both."""
    return min(a[0], b[0]), min(a[1], b[1]), max(a[2], b[2]), max(a[3], b[3])


def _common(a: Box, b: Box) -> Box:
    return max(a[0], b[0]), max(a[1], b[1]), min(a[2], b[2]), min(a[3], b[3])


def _box(values: list[int]) -> Box:
    top, left, bottom, right = values
    return top, left, bottom, right
