"""Bring small maps up to full size along the edges of a picture.

The guided filter of He, Sun and Tang ("Guided Image Filtering", 2013; "Fast Guided Filter", 2015) finds for each
small window the slope at which the map follows the picture. Here it is found at the small size, and what is missing
in the enlarged map is the slope times the detail that is missing in the enlarged picture.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

WINDOW = 5
FLATNESS = 1e-2  # variance of the picture below which a window's map is taken as constant


def upsample_guided(x: Tensor, small: Tensor, large: Tensor) -> Tensor:
    """Upsample a map.

    Args:
        x: the map, ``[C, h, w]``.
        small: the picture at the map's size, ``[1, h, w]``: ``large`` halved some times.
        large: the picture at full size, ``[1, H, W]``.

    Returns:
        ``[C, H, W]``; the map itself if the sizes are the same.
    """
    if small.shape == large.shape:
        return x
    factor = 1
    while small.shape[1] * factor < large.shape[1] or small.shape[2] * factor < large.shape[2]:
        factor *= 2
    mean, mean_x = _mean(small), _mean(x)
    variance = (_mean(small * small) - mean * mean).clamp_min(0)
    slope = _mean((_mean(small * x) - mean * mean_x) / (variance + FLATNESS))
    height, width = large.shape[1:]
    detail = large[0] - _enlarge(small[0], factor)[:height, :width]
    out = x.new_empty(len(x), height, width)
    for channel in range(len(x)):  # one at a time: these are the largest maps there are
        torch.mul(_enlarge(slope[channel], factor)[:height, :width], detail, out=out[channel])
        out[channel] += _enlarge(x[channel], factor)[:height, :width]
    return out


def _mean(x: Tensor) -> Tensor:
    """Means of the windows around the pixels; those at the border are smaller."""
    return F.avg_pool2d(x[None], WINDOW, 1, WINDOW // 2, count_include_pad=False)[0]


def _enlarge(x: Tensor, factor: int) -> Tensor:
    return F.interpolate(x[None, None], scale_factor=factor, mode="bilinear")[0, 0]
