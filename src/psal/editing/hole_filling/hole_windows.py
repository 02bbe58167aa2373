"""Fill the holes of a large picture one window at a time: the cost then grows with the holes, not with the picture."""

from dataclasses import replace

import torch
import torch.nn.functional as F
from scipy import ndimage
from torch import Tensor

from psal.editing.hole_filling.coarse_to_fine import Filled, fill_hole, has_valid_key
from psal.editing.hole_filling.fill_request import FillRequest

MIN_PIXELS = 2_000_000  # of a picture that is searched in windows; smaller ones are searched whole
MIN_MARGIN = 512  # pixels around a hole in which its sources are looked for
MARGIN_PER_SIDE = 2  # margin of a large hole, as a multiple of its longer side
BLOCK = 32  # pixels per side; holes within one block, or in adjacent ones, share a window
MIN_KNOWN = 0.5  # of a window; with less, the picture is searched whole
MAX_SHARE = 0.5  # of the picture, in all windows; with more, it is searched whole

Window = tuple[int, int, int, int]  # top, bottom, left, right


def fill_holes(request: FillRequest) -> Filled:
    """Fill all holes, those of a large picture from their surroundings.

    With a source mask the whole picture is searched.
    """
    windows = hole_windows(request.hole) if request.sources is None else None
    if windows is None:
        return fill_hole(request)
    width = request.hole.shape[1]
    colors: list[Tensor] = []
    targets: list[Tensor] = []
    sources: list[Tensor] = []
    energies = 0.0
    for count, (top, bottom, left, right) in enumerate(windows):
        area = slice(top, bottom), slice(left, right)
        part = fill_hole(_crop(request, area, count / len(windows), 1 / len(windows)))
        colors.append(part.color)
        energies += part.energy * len(part.target)
        for positions, found in ((part.target, targets), (part.source, sources)):
            row, column = positions // (right - left), positions % (right - left)
            found.append((row + top) * width + column + left)
    target, source = torch.cat(targets), torch.cat(sources)
    order = target.argsort()
    return Filled(torch.cat(colors, 1)[:, order], target[order], source[order], energies / len(target))


def hole_windows(hole: Tensor) -> list[Window] | None:
    """Disjoint windows that together contain a hole; None if the picture is to be searched whole."""
    height, width = hole.shape
    if height * width < MIN_PIXELS:
        return None
    blocks = F.max_pool2d(hole[None].to(torch.float16), BLOCK, ceil_mode=True)[0] > 0
    labels, _ = ndimage.label(blocks.numpy(), structure=[[1] * 3] * 3)
    windows: list[Window] = []
    for rows, columns in ndimage.find_objects(labels):
        sides = [(side.stop - side.start) * BLOCK for side in (rows, columns)]
        margin = max(MIN_MARGIN, MARGIN_PER_SIDE * max(sides))
        window = (
            max(0, rows.start * BLOCK - margin), min(height, rows.stop * BLOCK + margin),
            max(0, columns.start * BLOCK - margin), min(width, columns.stop * BLOCK + margin),
        )  # fmt: skip
        while touched := [other for other in windows if _overlap(window, other)]:
            windows = [other for other in windows if other not in touched]
            window = _union([window, *touched])
        windows.append(window)
    if sum((bottom - top) * (right - left) for top, bottom, left, right in windows) > MAX_SHARE * hole.numel():
        return None
    known = [~hole[top:bottom, left:right] for top, bottom, left, right in windows]
    enough = all(part.sum() >= MIN_KNOWN * part.numel() and has_valid_key(part) for part in known)
    return windows if enough else None


def _crop(request: FillRequest, area: tuple[slice, slice], start: float, share: float) -> FillRequest:
    def progress(done: float) -> None:
        request.report(start + share * done)

    return replace(
        request, color=request.color[:, *area], hole=request.hole[area], progress=progress,
        guide=None if request.guide is None else request.guide[:, *area],
        avoid=None if request.avoid is None else request.avoid[area],
    )  # fmt: skip


def _overlap(a: Window, b: Window) -> bool:
    return a[0] < b[1] and b[0] < a[1] and a[2] < b[3] and b[2] < a[3]


def _union(windows: list[Window]) -> Window:
    tops, bottoms, lefts, rights = zip(*windows, strict=True)
    return min(tops), max(bottoms), min(lefts), max(rights)
