"""Upsample a map along the edges of a picture.

After the guided filter of He, Sun and Tang ("Guided Image Filtering", 2013; "Fast Guided Filter", 2015): in each window
of the small picture the map is fitted as a linear function of the picture. The slope of that fit, times the detail that
the enlarged small picture lacks, is added to the enlarged map.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

WINDOW = 5  # pixels of the small picture
FLAT_VARIANCE = 1e-2  # variance of the picture below which a window counts as flat, so the map gets no detail from it


def upsample_guided(x: Tensor, small: Tensor, large: Tensor) -> Tensor:
    """Upsample a map to the size of a picture.

    Args:
        x: the map, ``[C, h, w]``.
        small: the picture at the map's size, ``[1, h, w]``: ``large`` halved zero or more times.
        large: the picture at full size, ``[1, H, W]``.

    Returns:
        ``[C, H, W]``; the map itself if the sizes are equal.
    """
    if small.shape == large.shape:
        return x
    factor = 1
    while small.shape[1] * factor < large.shape[1] or small.shape[2] * factor < large.shape[2]:
        factor *= 2
    mean, mean_x = _window_mean(small), _window_mean(x)
    variance = (_window_mean(small * small) - mean * mean).clamp_min(0)
    slope = _window_mean((_window_mean(small * x) - mean * mean_x) / (variance + FLAT_VARIANCE))
    height, width = large.shape[1:]
    detail = large[0] - _enlarge(small[0], factor)[:height, :width]
    out = x.new_empty(len(x), height, width)
    for channel in range(len(x)):  # one at a time, as these maps are the largest in memory
        torch.mul(_enlarge(slope[channel], factor)[:height, :width], detail, out=out[channel])
        out[channel] += _enlarge(x[channel], factor)[:height, :width]
    return out


def _window_mean(x: Tensor) -> Tensor:
    """Mean over the window around each pixel, ``[C, h, w]``; windows are cut off at the border."""
    return F.avg_pool2d(x[None], WINDOW, 1, WINDOW // 2, count_include_pad=False)[0]


def _enlarge(x: Tensor, factor: int) -> Tensor:
    return F.interpolate(x[None, None], scale_factor=factor, mode="bilinear")[0, 0]
