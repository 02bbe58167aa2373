"""Enlarge a picture with detail of its own.

After Glasner, Bagon and Irani, "Super-Resolution from a Single Image" (2009), and Freedman and Fattal, "Image and
Video Upscaling from Local Self-Examples" (2011): what is small in a picture is often there a second time, larger.
The picture is shrunk and enlarged again; the detail that this takes away is known. Each patch of the blurred
enlargement finds similar patches of the picture blurred alike, and gets the detail which those have lost.
"""

import math
from typing import Any

import torch
from torch import Tensor

import psal
from psal.editing.resizing import CLAMPED_BACK_PROJECTIONS, back_project, enlarge, resize
from psal.io.pictures import ImageLike, Progress, open_picture
from psal.luminance import BLUE, GREEN, RED
from psal.seeds import add_to_seed, check_seed, draw_seed

LARGEST_SCALE = 4.0
LARGEST_STEP = 2.0
PATCH = 5
NEIGHBORS = 5
NOISE = 0.02  # differences of grey levels below this say nothing about how well a patch fits
STRICTNESS = 0.1  # a patch whose squared distance exceeds the best by 2 · STRICTNESS of the best weighs e times less


def upscale(image: ImageLike, scale: float, *, seed: int | None = None, progress: Progress | None = None) -> Any:
    """Enlarge a picture with detail that recurs in it at another size.

    The result, shrunk as Pillow's BICUBIC does, is the picture again: to within one of 255 levels, but for single
    pixels at hard edges between black and white, where the detail would have to leave 0..1 (7 levels were seen),
    and for scales below 1.3, which shrinking back blurs most (9 levels were seen).

    Args:
        image: a path, a Pillow image, an array ``(H, W)`` or ``(H, W, C)``, a tensor ``(C, H, W)``; grey or RGB,
            with or without alpha, 8 or 16 bit or floats in 0..1.
        scale: above 1 and at most 4, not necessarily whole; each side becomes ``round(side * scale)``.
        seed: of the search; None draws one from torch's generator.
        progress: called with the share that is done.

    Returns:
        A picture of the kind that was given (a :class:`psal.Photo` for a path). Alpha is enlarged without detail.

    Raises:
        ValueError, TypeError: if an argument is not as described.

    >>> upscale(torch.rand(3, 20, 15), 1.5).shape
    torch.Size([3, 30, 22])
    """
    if isinstance(scale, bool) or not isinstance(scale, int | float):
        raise TypeError(f"scale must be a number, got {scale!r}")
    if not 1 < scale <= LARGEST_SCALE:
        raise ValueError(f"scale must be above 1 and at most {LARGEST_SCALE:g}, got {scale!r}")
    check_seed(seed)
    picture = open_picture(image)
    number = int(draw_seed(seed))
    return picture.restore(enlarge_picture(picture.color, float(scale), seed=number, progress=progress))


def enlarge_picture(color: Tensor, scale: float, *, seed: int, progress: Progress | None = None) -> Tensor:
    """Enlarge in steps of at most 2.

    Args:
        color: ``[C, H, W]``, 0..1.
        scale: above 1.
        seed: of the search.
        progress: called with the share that is done.

    Returns:
        ``[C, round(H * scale), round(W * scale)]``, 0..1.
    """
    height, width = color.shape[1:]
    steps = max(1, math.ceil(math.log(scale, LARGEST_STEP) - 1e-9))
    small = color[None]
    for step in range(1, steps + 1):
        factor = scale ** (step / steps)
        size = round(height * factor), round(width * factor)
        small = add_detail(small, size, seed=add_to_seed(seed, step))
        if progress:
            progress(0.95 * 4.0 ** (step - steps))
    large = back_project(small, color[None], rounds=CLAMPED_BACK_PROJECTIONS, clamp=True)[0]
    if progress:
        progress(1.0)
    return large


def add_detail(small: Tensor, size: tuple[int, int], *, seed: int) -> Tensor:
    """One step: the enlargement, and the detail that similar patches of the small map have.

    Query and keys are blurred by the same treatment, so what the keys lack is what the query lacks.

    Args:
        small: ``(1, C, h, w)``, C is 1 or 3.
        size: (H, W) of the result, at most twice as large.
        seed: of the search.

    Returns:
        ``(1, C, *size)``; :func:`resize` gives the small map again. Not clamped.
    """
    query = enlarge(small, size)
    views = _views(small, (size[0] / small.shape[2], size[1] / small.shape[3]))
    if not views:
        return query
    key = torch.cat([enlarge(coarse, _size(sharp)) for sharp, coarse in views], dim=2)  # one below the other
    detail = torch.cat([sharp for sharp, _ in views], dim=2) - key
    found = psal.patch_match(
        _weighted(query), _weighted(key), patch_size=PATCH, neighbors=min(NEIGHBORS, key[0, 0].numel()), seed=seed
    )
    distance = -found.score / PATCH**2
    logit = -distance / (2 * (NOISE**2 + STRICTNESS * distance[:, :1]))
    proposed = psal.aggregate(psal.Matches(found.index, logit), detail, patch_size=PATCH)
    return back_project(query + proposed, small)


def _views(small: Tensor, scale: tuple[float, float]) -> list[tuple[Tensor, Tensor]]:
    """The map, and it shrunk by the scale, for four positions of the coarse pixels' grid.

    Where an edge lies between coarse pixels decides how shrinking blurs it, so that the same edge a pixel further
    is another example. All views are of one size.
    """
    coarse = [math.floor((side - 1) / factor) for side, factor in zip(_size(small), scale, strict=True)]
    height, width = (round(side * factor) for side, factor in zip(coarse, scale, strict=True))
    if not min(coarse):
        return []
    sharp = [small[..., y : y + height, x : x + width] for y in (0, 1) for x in (0, 1)]
    return [(view, resize(view, (coarse[0], coarse[1]))) for view in sharp]


def _size(x: Tensor) -> tuple[int, int]:
    return x.shape[-2], x.shape[-1]


def _weighted(color: Tensor) -> Tensor:
    """Channels whose squared differences count as much as the eye sees of them."""
    return color if color.shape[1] == 1 else color * color.new_tensor([RED, GREEN, BLUE]).sqrt()[:, None, None]
