"""Matches as a picture: where each pixel's best match lies, seen from the pixel, in the colours of optical flow."""

import torch
from torch import Tensor

from psal.matches import Matches

STRIP = 256  # rows at a time, so that the memory goes with the width


def color_shifts(matches: Matches, width: int) -> Tensor:
    """Colour each pixel by the shift to its best match.

    The hue is the direction: red is to the right, chartreuse (yellow-green) down, cyan to the left, violet up. The
    saturation is the length: white is no shift, the full colour that length which nine of ten shifts of the picture
    stay below, so that a few stray matches don't make all the others pale; linear in between. A query left out is
    black.

    Args:
        matches: of a query map of two dimensions, batch size 1.
        width: of the key's map.

    Returns:
        uint8 ``[3, H, W]``, RGB
    """
    index = matches.index[0, 0]  # [H, W]
    long = _usual_length(index, width)
    out = torch.empty(3, *index.shape, dtype=torch.uint8)
    for rows in _strips(index):
        down, right = _shifts(index, rows, width)
        hue = torch.atan2(down, right) / (2 * torch.pi) % 1
        saturation = (torch.hypot(down, right) / long).clamp_max(1)
        # From HSV with a value of 1: a channel loses the more, the further its hue is from the pixel's.
        centers = torch.tensor([0.0, 1 / 3, 2 / 3])[:, None, None]
        away = ((hue - centers + 0.5) % 1 - 0.5).abs() * 6  # [3, rows, W], 0..3
        color = 1 - saturation * (away - 1).clamp(0, 1)
        out[:, rows] = (color * 255 * (index[rows] >= 0)).round().to(torch.uint8)
    return out


def _usual_length(index: Tensor, width: int) -> float:
    """What nine of ten shifts stay below, judged by about a hundred rows; at least a pixel."""
    lengths = []
    for row in range(0, len(index), max(1, len(index) // 100)):
        used = index[row] >= 0
        lengths.append(torch.hypot(*_shifts(index, slice(row, row + 1), width))[0, used])
    sorted_lengths = torch.cat(lengths).sort().values
    return max(1.0, float(sorted_lengths[int(0.9 * (len(sorted_lengths) - 1))])) if len(sorted_lengths) else 1.0


def _strips(index: Tensor) -> list[slice]:
    return [slice(top, top + STRIP) for top in range(0, len(index), STRIP)]


def _shifts(index: Tensor, rows: slice, width: int) -> tuple[Tensor, Tensor]:
    """How many pixels down and to the right the matches of some rows lie; 0 for queries left out."""
    found = index[rows]
    y, x = (torch.arange(n, dtype=torch.float32) for n in index.shape)
    used = found >= 0
    down = torch.div(found, width, rounding_mode="floor").float() - y[rows, None]
    return down * used, ((found % width).float() - x) * used
