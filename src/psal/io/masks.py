"""Masks of holes, given as any kind of picture."""

import os

import numpy as np
import torch
from torch import Tensor

from psal.io.pictures import MAX_VALUE, ImageLike, RawPicture, open_picture, to_float

# A mask is two-valued. A pixel further than this from both of its values is odd; soft edges make less than 1 % of the
# pixels odd, a wide blur a few percent, and photographs more than 10 %.
ODD_DISTANCE = 0.25
MAX_ODD_FRACTION = 0.1


def open_mask(mask: ImageLike, size: tuple[int, int], name: str = "mask") -> Tensor:
    """Convert a mask of any kind to booleans.

    Args:
        mask: white (or any one color, or True) in the hole, black or False elsewhere; the threshold is half of white.
            Any picture that :func:`open_picture` takes, or bool; arrays and tensors may be ``(H, W)``. If no integer
            value exceeds 1, 1 is the hole. Transparent pixels are outside of the hole. Pictures of many colors or
            grays are refused, unless they are floats.
        size: (H, W) of the picture.
        name: what error messages call it; a file is called by its own name.

    Returns:
        bool ``[H, W]``, True in the hole.

    Raises:
        ValueError, TypeError: if it is not such a mask.
        OSError: if a file cannot be read.

    >>> open_mask(np.eye(7, dtype=bool), (7, 7)).sum()
    tensor(7)
    """
    if isinstance(mask, np.ndarray) and mask.dtype == np.bool_:
        if mask.shape == tuple(size):  # as it is; large masks take long to check
            return torch.from_numpy(mask.copy())
        mask = mask.astype(np.uint8)
    if isinstance(mask, Tensor):
        mask = mask.to(torch.uint8) if mask.dtype == torch.bool else mask
        mask = mask[None] if mask.ndim == 2 else mask
    if isinstance(mask, str | os.PathLike):
        name = os.fspath(mask)
    picture = open_picture(mask, name)
    brightness = picture.color.amax(0)  # [H, W]
    if tuple(brightness.shape) != tuple(size):
        raise ValueError(
            f"{name} is {brightness.shape[1]} × {brightness.shape[0]} pixels and the picture {size[1]} × {size[0]}: "
            "they must have the same size"
        )
    max_value = MAX_VALUE.get(picture.dtype, 1)
    only_zeros_and_ones = round(brightness.max().item() * max_value) == 1
    scale = torch.tensor(float(max_value if only_zeros_and_ones else 1))
    if picture.alpha is not None:
        scale = scale * picture.alpha[0]
    hole = brightness * scale >= 0.5
    if max_value > 1 and (odd := _odd_fraction(picture.color * scale, hole)) > MAX_ODD_FRACTION:
        raise ValueError(
            f"{name} is not a mask: {odd:.0%} of its pixels are neither black nor of one other color: "
            "make it white in the hole and black elsewhere"
        )
    return hole


def _odd_fraction(color: Tensor, hole: Tensor) -> float:
    """Fraction of the pixels ``[C, H, W]`` that are neither nearly black nor nearly of the hole's color."""
    if not hole.any():
        return int((color.amax(0) > ODD_DISTANCE).sum()) / hole.numel()
    odd = torch.zeros_like(hole)
    for channel in color:
        odd |= (channel - channel[hole].median() * hole).abs_() > ODD_DISTANCE
    return int(odd.sum()) / odd.numel()


def transparent_pixels(picture: RawPicture, name: str) -> Tensor:
    """Pixels of which less than half is opaque, bool ``[H, W]``.

    Args:
        picture: with alpha.
        name: what error messages call it.

    Raises:
        ValueError: if it has no alpha.
    """
    if picture.alpha is None:
        raise ValueError(f"{name} has no alpha to take a mask from: give a mask")
    return to_float(picture.alpha)[0] < 0.5
