"""Fill holes in a picture with patches of the rest of it.

After Newson, Almansa, Gousseau and Pérez, "Non-Local Patch-Based Image Inpainting" (IPOL 2017), and Wexler,
Shechtman and Irani, "Space-Time Completion of Video" (2007): from coarse to fine, search and vote in turns.
"""

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from psal.editing import hole_filling
from psal.editing.pyramid import Level, make_pyramid
from psal.editing.seams import blend_seams
from psal.io.masks import open_mask
from psal.io.pictures import ImageLike, Progress, open_picture
from psal.seeds import add_to_seed, check_seed, draw_seed

ALTERNATIONS = 6, 4, 2  # at most, at the coarsest level, those between, the finest
TAKE_OVER = 500  # more than there are alternations, so that no two steps share a seed
LITTLE = 0.002  # mean change of a pixel that is not worth a further alternation


def inpaint(image: ImageLike, mask: ImageLike, *, seed: int | None = None, progress: Progress | None = None) -> Any:
    """Fill holes of any size and shape with what the rest of the picture suggests.

    Args:
        image: a path, Pillow image, array or tensor; grey, RGB, with or without alpha.
        mask: of the same size, white (or True) where the hole is.
        seed: of the search; None draws one from torch's generator.
        progress: called with the share that is done, 0..1.

    Returns:
        A picture of the same kind (a :class:`psal.Photo` for a path); outside of the hole it is the same, bit for bit.
        With no hole, a copy.

    Raises:
        ValueError, TypeError: if image or mask can't be used, or no patch of known pixels is left.

    >>> image = torch.rand(3, 40, 50)
    >>> mask = torch.zeros(40, 50, dtype=torch.bool)
    >>> mask[10:20, 15:30] = True
    >>> filled = inpaint(image, mask, seed=0)
    >>> filled[:, ~mask].equal(image[:, ~mask])
    True
    """
    check_seed(seed)
    picture = open_picture(image, "image")
    height, width = picture.color.shape[1:]
    hole = open_mask(mask, (height, width), "mask")
    if not hole.any():
        return _keep_known(picture.restore(picture.color), image, hole)
    if hole.all():
        raise ValueError("mask is nothing but hole: paint only what is to be filled white")
    side = hole_filling.PATCH
    if min(height, width) < side:
        raise ValueError(f"image must be at least {side} × {side} pixels, got {width} × {height}")
    if not _has_room(hole):
        raise ValueError(
            f"mask must leave at least one known patch of {side} × {side} pixels, got one that leaves "
            f"{int((~hole).sum())} of {height * width} pixels but no patch: paint less of it white"
        )
    filled = fill(picture.color, hole, seed=int(draw_seed(seed)), progress=progress)
    return _keep_known(picture.restore(filled), image, hole)


def fill(color: Tensor, hole: Tensor, *, seed: int, progress: Progress | None = None) -> Tensor:
    """Fill a hole.

    Args:
        color: ``[C, H, W]``, 0..1.
        hole: bool ``[H, W]``, not empty, and not so large that no patch is left.
        seed: of the search.
        progress: called with the share that is done.

    Returns:
        ``[C, H, W]``; outside of the hole the very same numbers.
    """
    filled = color.clone()
    filled[:, hole] = 0  # whatever stands there must not matter
    pyramid = _searchable(make_pyramid(filled, hole, _count_levels(hole)))
    filling = hole_filling.peel(hole_filling.start_level(pyramid.pop()), seed)
    coarsest = len(pyramid)
    for number in range(coarsest, -1, -1):
        if number < coarsest:
            filling = hole_filling.take_over(filling, pyramid.pop(), add_to_seed(seed, 1000 * (number + 1) + TAKE_OVER))
        turns = ALTERNATIONS[0 if number == coarsest else 2 if number == 0 else 1]
        for turn in range(turns):
            filling, change = hole_filling.improve(filling, add_to_seed(seed, 1000 * (number + 1) + turn))
            if progress:
                progress(0.9 * 4.0**-number * (1 + 3 * (turn + 1) / turns) / 4)
            if change < LITTLE:
                break
    (top, left), (height, width) = filling.corner, filling.open.shape
    part = slice(top, top + height), slice(left, left + width)
    y, x = hole_filling.best_sources(filling)
    window = filled[:, *part]
    to_y, to_x = filling.atlas.y[filling.hole], filling.atlas.x[filling.hole]
    window[:, to_y, to_x] = blend_seams(window, ~hole[part], filling.atlas, filling.hole, y, x)
    if progress:
        progress(1.0)
    return filled


def _keep_known(filled: Any, image: ImageLike, hole: Tensor) -> Any:
    """What is known as it was given: 64-bit floats have more digits than what is computed with."""
    if isinstance(image, np.ndarray) and image.dtype.kind == "f":
        filled[~hole.numpy()] = image[~hole.numpy()]
    elif isinstance(image, Tensor) and image.dtype == torch.float64:
        known = ~hole.to(image.device)
        filled[..., known] = image.detach()[..., known]
    return filled


def _has_room(hole: Tensor) -> bool:
    return bool(hole_filling.open_keys(hole_filling.touches_hole(hole)).any())


def _count_levels(hole: Tensor) -> int:
    """Sizes at which a hole is looked at: at the coarsest one a patch sees across it."""
    rows, columns = (slice(max(0, part.start - 1), part.stop + 1) for part in hole_filling.box_of(hole))
    depth = int(hole_filling.depth_of(hole[rows, columns]).max())
    return 1 + max(0, math.floor(math.log2(2 * depth / hole_filling.PATCH)))


def _searchable(pyramid: list[Level]) -> list[Level]:
    """The levels before the first that is too coarse: known parts shrink, and few patches without a hole are left."""
    for number, level in enumerate(pyramid[1:], 1):
        if hole_filling.open_keys(hole_filling.touches_hole(~level.known)).sum() < hole_filling.ENOUGH_KEYS:
            return pyramid[:number]
    return pyramid
