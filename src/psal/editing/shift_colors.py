"""Matches as a picture: the shift of each pixel to its best match, in the colors used for optical flow."""

import numpy as np
import torch
from torch import Tensor

from psal.matches import Matches

STRIP_ROWS = 256  # rows at a time, which bounds the memory
FULL_SATURATION_QUANTILE = 0.9  # of the shift lengths, so that a few stray matches don't make the others pale
SAMPLED_ROWS = 100  # rows that the quantile is estimated from


def color_shifts(matches: Matches, width: int) -> Tensor:
    """Color each pixel by the shift to its best match.

    The hue is the direction: red right, chartreuse (yellow-green) down, cyan left, violet up. The saturation is the
    length, from white for no shift to the full color for the 0.9 quantile of all lengths and above. Masked queries are
    black.

    Args:
        matches: of a two-dimensional query map, batch size 1.
        width: of the key map, in pixels.

    Returns:
        RGB uint8 ``[3, H, W]``
    """
    index = matches.index[0, 0].cpu()  # [H, W]
    full_length = _full_saturation_length(index, width)
    out = torch.empty(3, *index.shape, dtype=torch.uint8)
    for top in range(0, len(index), STRIP_ROWS):
        rows = slice(top, top + STRIP_ROWS)
        down, right = _shifts(index, rows, width)
        # NumPy's arctan2: the last bits of torch's depend on the number of threads.
        hue = torch.from_numpy(np.arctan2(down.numpy(), right.numpy())) / (2 * torch.pi) % 1
        saturation = (torch.hypot(down, right) / full_length).clamp_max(1)
        color = _saturated_rgb(hue, saturation) * (index[rows] >= 0)
        out[:, rows] = (color * 255).round().to(torch.uint8)
    return out


def _saturated_rgb(hue: Tensor, saturation: Tensor) -> Tensor:
    """HSV to RGB at value 1: ``[H, W]`` in 0..1 to ``[3, H, W]``. (skimage's hsv2rgb takes five times as long.)"""
    channel_hues = torch.tensor([0.0, 1 / 3, 2 / 3])[:, None, None]
    hue_distance = ((hue - channel_hues + 0.5) % 1 - 0.5).abs() * 6  # [3, H, W], 0..3
    return 1 - saturation * (hue_distance - 1).clamp(0, 1)


def _full_saturation_length(index: Tensor, width: int) -> float:
    """Shift length in pixels that gets the full color, at least 1."""
    lengths = []
    for row in range(0, len(index), max(1, len(index) // SAMPLED_ROWS)):
        matched = index[row] >= 0
        lengths.append(torch.hypot(*_shifts(index, slice(row, row + 1), width))[0, matched])
    sampled = torch.cat(lengths)
    if not len(sampled):
        return 1.0
    return max(1.0, float(sampled.quantile(FULL_SATURATION_QUANTILE, interpolation="lower")))


def _shifts(index: Tensor, rows: slice, width: int) -> tuple[Tensor, Tensor]:
    """Shifts down and to the right, in pixels, of the matches of some rows; 0 for masked queries."""
    match = index[rows]
    y, x = (torch.arange(size, dtype=torch.float32) for size in index.shape)
    matched = match >= 0
    down = torch.div(match, width, rounding_mode="floor").float() - y[rows, None]
    return down * matched, ((match % width).float() - x) * matched
