"""Colours by the trained network, at no more than the size that it was trained at."""

import math

import torch
from torch import Tensor

from psal.editing.guided_upsampling import upsample_guided
from psal.editing.resizing import halve, resize
from psal.io.pictures import Progress
from psal.luminance import chroma
from psal.models.weights import load_colorizer


def find_chroma_by_network(luma: Tensor, reference: Tensor, seed: int, progress: Progress | None = None) -> Tensor:
    """The chroma that a picture would have in the reference's colours.

    Args:
        luma: ``[1, H, W]``, 0..1.
        reference: ``[3, h, w]``, 0..1.
        seed: of the search.
        progress: called with the share that is done.

    Returns:
        ``[2, H, W]``
    """
    network, settings = load_colorizer(seed=seed)
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
    """A map ``[C, H, W]`` halved until its shorter side is no longer than that."""
    while min(x.shape[1:]) > size:
        x = halve(x)
    return x


def _shrink_to_area(pixels: int, x: Tensor) -> Tensor:
    """A map ``[C, H, W]`` with about so many pixels if it has more: the larger of two pictures of a scene shows it
    larger.
    """
    scale = math.sqrt(pixels / x[0].numel())
    if scale >= 1:
        return x
    height, width = (max(1, round(scale * side)) for side in x.shape[1:])
    return resize(x[None], (height, width))[0].clamp(0, 1)
