"""Grow a mask, and fade its edge."""

import torch
from scipy import ndimage
from torch import Tensor

from psal.editing.hole_filling.hole_geometry import bounding_box
from psal.editing.registry import MAX_EDGE


def check_edge(name: str, pixels: int) -> None:
    """Check a width in pixels.

    Raises:
        TypeError, ValueError: if it is not an int from 0 to MAX_EDGE.
    """
    if not isinstance(pixels, int) or isinstance(pixels, bool):
        raise TypeError(f"{name} must be an int, got {pixels!r}")
    if not 0 <= pixels <= MAX_EDGE:
        raise ValueError(f"{name} must be from 0 to {MAX_EDGE} pixels, got {pixels}")


def grow_mask(mask: Tensor, pixels: int) -> Tensor:
    """Add all pixels within a distance of the mask, bool ``[H, W]``.

    >>> point = torch.zeros(5, 5, dtype=torch.bool)
    >>> point[2, 2] = True
    >>> grow_mask(point, 1).sum()
    tensor(5)
    """
    return mask if pixels == 0 else fade_edge(mask, pixels) > 0


def fade_edge(mask: Tensor, pixels: int) -> Tensor:
    """Opacity that is 1 in the mask and falls to 0 outside of it, float ``[H, W]``.

    Args:
        mask: bool ``[H, W]``.
        pixels: distance within which the opacity is above 0.
    """
    opacity = mask.float()
    if pixels == 0 or not mask.any():
        return opacity
    window = tuple(slice(max(0, side.start - pixels), side.stop + pixels) for side in bounding_box(mask))
    distance = torch.from_numpy(ndimage.distance_transform_edt(~mask[window].numpy())).float()
    opacity[window] = (1 - distance / (pixels + 1)).where(distance <= pixels, 0)
    return opacity
