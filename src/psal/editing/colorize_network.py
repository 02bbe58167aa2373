"""Chroma from the trained colorization network, run at the size it was trained at."""

import math

import torch
from torch import Tensor

from psal.editing.guided_upsampling import upsample_guided
from psal.editing.resizing import halve, resize
from psal.luminance import chroma
from psal.models.colorizer_weights import load_colorizer
from psal.progress import Progress


def predict_chroma(luma: Tensor, reference: Tensor, seed: int, progress: Progress | None = None) -> Tensor:
    """Chroma of a picture in the colors of a reference, predicted by the network.

    Args:
        luma: ``[1, H, W]``, 0..1; the network runs on its device.
        reference: RGB ``[3, h, w]``, 0..1, on the same device.
        seed: of the search in the network's attention layers.
        progress: called with the fraction of the work that is done, 0..1.

    Returns:
        ``[2, H, W]``
    """
    network, settings = load_colorizer(seed=seed)
    network.to(luma.device)
    small = _halve_to(int(settings["size"]), luma)
    colors = _shrink_to_area(small[0].numel(), reference)
    with torch.no_grad():
        colored = network(small[None], colors[None])[0]
    if progress:
        progress(0.9)
    out = upsample_guided(chroma(colored), small, luma)
    if progress:
        progress(1.0)
    return out


def _halve_to(size: int, x: Tensor) -> Tensor:
    """Halve a map ``[C, H, W]`` until its shorter side is at most ``size``."""
    while min(x.shape[1:]) > size:
        x = halve(x)
    return x


def _shrink_to_area(pixels: int, x: Tensor) -> Tensor:
    """Shrink a map ``[C, H, W]`` to about this many pixels, if it has more.

    Two pictures of one scene then show it at about the same scale.
    """
    scale = math.sqrt(pixels / x[0].numel())
    if scale >= 1:
        return x
    height, width = (max(1, round(scale * side)) for side in x.shape[1:])
    return resize(x[None], (height, width))[0].clamp(0, 1)
