"""Enlarge a picture with detail of its own, or by a trained network.

Detail of its own: see :mod:`psal.editing.self_examples`. The network is :class:`psal.models.CSNLN`.
"""

import math
import os
from functools import partial
from typing import Any

import torch
from torch import Tensor

from psal.devices import choose_device
from psal.editing.edge_smoothing import smooth_along_edges
from psal.editing.network_choice import choose_network
from psal.editing.registry import MAX_SCALE
from psal.editing.resizing import CLAMPED_BACK_PROJECTIONS, back_project
from psal.editing.self_examples import add_detail
from psal.editing.upscale_network import upscale_with_network
from psal.io.pictures import ImageLike, open_picture
from psal.progress import Progress
from psal.seeds import add_to_seed, check_seed, draw_seed

MAX_STEP = 2.0  # factor of one step; larger scales take several
SMOOTHED_BACK_PROJECTIONS = 3  # rounds after smoothing along edges
TOLERANCE = 0.4 / 255  # largest error at which back-projection ends early; rounding adds up to 0.5 / 255


def upscale(
    image: ImageLike,
    scale: float,
    *,
    model: str = "patches",
    weights: str | os.PathLike[str] | None = None,
    attention: str = "psal3",
    seed: int | None = None,
    device: str | torch.device = "cpu",
    progress: Progress | None = None,
) -> Any:
    """Enlarge a picture with detail that recurs in it at another size.

    Shrunk by Pillow's BICUBIC, the result of the model "patches" is the picture again, to within one 8-bit level.
    Exceptions: single pixels at hard edges between black and white, where the detail would leave 0..1 (up to 7 levels
    were seen), and scales below 1.3, which shrinking blurs most (up to 9 levels were seen).

    Args:
        image: path, :class:`psal.Photo`, Pillow image, array ``(H, W)`` or ``(H, W, C)``, or tensor ``(C, H, W)``;
            gray or RGB, with or without alpha; 8 bit, 16 bit, or floats in 0..1.
        scale: factor per side, above 1 and at most 4, not necessarily whole; sides become ``round(side * scale)``.
        model: "patches", or "network", which runs a trained network on the whole picture.
        weights: file of the network, written by ``psal train upscale`` or by the network's authors. The scale must be
            the one that it was trained for, or a power of it.
        attention: of the network, across scales: "psal1", "psal3" or "psal7" (PatchMatch with that many neighbors), or
            "exact", for small pictures.
        seed: of the search; None draws one from torch's generator.
        device: "cpu", "cuda", "cuda:1" and so on, or "auto" for a CUDA or ROCm device if there is one.
        progress: called with the fraction of the work that is done, 0..1.

    Returns:
        A picture of the same kind as ``image`` (a :class:`psal.Photo` for a path). Alpha is enlarged without detail.

    Raises:
        ValueError, TypeError: if an argument is not as described.

    >>> upscale(torch.rand(3, 20, 15), 1.5).shape
    torch.Size([3, 30, 22])
    """
    if isinstance(scale, bool) or not isinstance(scale, int | float):
        raise TypeError(f"scale must be a number, got {scale!r}")
    if not 1 < scale <= MAX_SCALE:
        raise ValueError(f"scale must be above 1 and at most {MAX_SCALE:g}, got {scale!r}")
    network = choose_network("upscale", model, weights, attention)
    check_seed(seed)
    chosen = choose_device(device)
    picture = open_picture(image)
    enlarge_color = upscale_color if network is None else partial(upscale_with_network, choice=network)
    large = enlarge_color(picture.color.to(chosen), float(scale), seed=int(draw_seed(seed)), progress=progress)
    return picture.restore(large)


def upscale_color(color: Tensor, scale: float, *, seed: int, progress: Progress | None = None) -> Tensor:
    """Enlarge in steps of at most 2.

    Args:
        color: ``[C, H, W]``, 0..1.
        scale: factor per side, above 1.
        seed: of the search.
        progress: called with the fraction of the work that is done, 0..1.

    Returns:
        ``[C, round(H * scale), round(W * scale)]``, 0..1.
    """
    height, width = color.shape[1:]
    steps = max(1, math.ceil(math.log(scale, MAX_STEP) - 1e-9))
    large, done = color[None], 0.0
    for step in range(1, steps + 1):
        factor = scale ** (step / steps)
        size = round(height * factor), round(width * factor)
        before, done = done, 0.95 * 4.0 ** (step - steps)
        large = add_detail(large, size, seed=add_to_seed(seed, step), progress=_part(progress, before, done))
        if steps > 1:  # the next step would take the jags of this one for edges
            large = back_project(smooth_along_edges(large), color[None], rounds=SMOOTHED_BACK_PROJECTIONS)
    large = back_project(large, color[None], rounds=CLAMPED_BACK_PROJECTIONS, clamp=True, tolerance=TOLERANCE)
    if progress:
        progress(1.0)
    return large[0]


def _part(progress: Progress | None, before: float, after: float) -> Progress | None:
    """Return the progress of a part of the work."""
    return progress and (lambda share: progress(before + share * (after - before)))
