"""Enlarge a picture with detail of its own, or by a trained network.

Detail of its own: after Glasner, Bagon and Irani, "Super-Resolution from a Single Image" (2009), and Freedman and
Fattal, "Image and Video Upscaling from Local Self-Examples" (2011). Structures recur in a picture at different sizes.
The picture is shrunk and enlarged again, so the detail that this removes is known. Each patch of the blurred
enlargement is matched with patches of the picture that were blurred in the same way, and receives the detail that those
have lost. The network is :class:`psal.models.CSNLN`.

Tuned constants, each varied alone: mean PSNR in dB of RGB at scale 2, five pictures of Urban100 and three of Set5. The
defaults give 29.36 dB.

=============  =======  ===========================================
constant       default  others
=============  =======  ===========================================
PATCH_SIZE     5        3: 29.27; 7: 29.16
NOISE          0.02     0.005: 29.36; 0.01: 29.35; 0.04: 29.37
VOTE_VARIANCE  0.1      0.03: 29.27; 0.3: 29.36
NEIGHBORS      5        1: 29.19; 3: 29.32; 8: 29.37
=============  =======  ===========================================
"""

import math
import os
from functools import partial
from typing import Any

import torch
from torch import Tensor

from psal.devices import choose_device
from psal.editing.network_choice import choose_network
from psal.editing.registry import MAX_SCALE
from psal.editing.resizing import CLAMPED_BACK_PROJECTIONS, back_project, enlarge, resize
from psal.editing.upscale_network import upscale_with_network
from psal.functional import aggregate, patch_match
from psal.io.pictures import ImageLike, open_picture
from psal.luminance import BLUE, GREEN, RED
from psal.matches import Matches
from psal.progress import Progress
from psal.seeds import add_to_seed, check_seed, draw_seed

MAX_STEP = 2.0  # factor of one step; larger scales take several
PATCH_SIZE = 5  # pixels per side
NEIGHBORS = 5  # matches per patch
NOISE = 0.02  # differences of gray levels (0..1) below this say nothing about how well a patch fits
VOTE_VARIANCE = 0.1  # variance of the votes' Gaussian weights, in squared distances of the best match


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
    large = color[None]
    for step in range(1, steps + 1):
        factor = scale ** (step / steps)
        size = round(height * factor), round(width * factor)
        large = add_detail(large, size, seed=add_to_seed(seed, step))
        if progress:
            progress(0.95 * 4.0 ** (step - steps))
    large = back_project(large, color[None], rounds=CLAMPED_BACK_PROJECTIONS, clamp=True)
    if progress:
        progress(1.0)
    return large[0]


def add_detail(small: Tensor, size: tuple[int, int], *, seed: int) -> Tensor:
    """Enlarge by one step, with detail from similar patches of the small map.

    Query and keys are blurred in the same way, so the detail that a key has lost is what the query lacks.

    Args:
        small: ``(1, C, h, w)``, C is 1 or 3.
        size: (H, W) of the result, at most twice as large.
        seed: of the search.

    Returns:
        ``(1, C, *size)``, not clamped; :func:`resize` turns it into the small map again.
    """
    query = enlarge(small, size)
    examples = _examples(small, (size[0] / small.shape[2], size[1] / small.shape[3]))
    if not examples:
        return query
    key = torch.cat([enlarge(coarse, _size(sharp)) for sharp, coarse in examples], dim=2)  # one below the other
    detail = torch.cat([sharp for sharp, _ in examples], dim=2) - key
    neighbors = min(NEIGHBORS, key[0, 0].numel())
    found = patch_match(_perceptual(query), _perceptual(key), patch_size=PATCH_SIZE, neighbors=neighbors, seed=seed)
    distance = -found.score / PATCH_SIZE**2
    logits = -distance / (2 * (NOISE**2 + VOTE_VARIANCE * distance[:, :1]))
    proposed = aggregate(Matches(found.index, logits), detail, patch_size=PATCH_SIZE)
    return back_project(query + proposed, small)


def _examples(small: Tensor, scale: tuple[float, float]) -> list[tuple[Tensor, Tensor]]:
    """Pairs of a crop of the map and the crop shrunk by the scale, for four phases of the coarse pixel grid.

    The position of an edge within a coarse pixel decides how shrinking blurs it, so a crop that starts one pixel
    further gives new examples. All pairs have the same sizes. The list is empty if the map is too small.
    """
    coarse = [math.floor((side - 1) / factor) for side, factor in zip(_size(small), scale, strict=True)]
    height, width = (round(side * factor) for side, factor in zip(coarse, scale, strict=True))
    if not min(coarse):
        return []
    crops = [small[..., y : y + height, x : x + width] for y in (0, 1) for x in (0, 1)]
    return [(crop, resize(crop, (coarse[0], coarse[1]))) for crop in crops]


def _size(x: Tensor) -> tuple[int, int]:
    return x.shape[-2], x.shape[-1]


def _perceptual(color: Tensor) -> Tensor:
    """Scale the channels so that squared differences are weighted as in luminance."""
    return color if color.shape[1] == 1 else color * color.new_tensor([RED, GREEN, BLUE]).sqrt()[:, None, None]
