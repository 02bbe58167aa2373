"""Geometry of a hole: its depth, the patches that touch it, the patches that may be copied into it."""

import numpy as np
import torch
from scipy import ndimage
from torch import Tensor

PATCH_SIZE = 7  # pixels per side
PATCH_RADIUS = PATCH_SIZE // 2


def hole_depth(hole: Tensor) -> Tensor:
    """Chessboard distance of each pixel to the nearest known pixel, float ``[H, W]``; 0 outside the hole."""
    distance = ndimage.distance_transform_cdt(hole.numpy(), "chessboard")
    return torch.from_numpy(distance.astype(np.float32))


def bounding_box(mask: Tensor) -> tuple[slice, slice]:
    """Rows and columns that contain all of a non-empty mask ``[H, W]``."""
    rows, columns = ndimage.find_objects(mask.to(torch.uint8).numpy())[0]
    return rows, columns


def patches_touching(mask: Tensor) -> Tensor:
    """Centers of the patches that contain a pixel of the mask, bool ``[H, W]``."""
    return torch.from_numpy(ndimage.maximum_filter(mask.numpy(), PATCH_SIZE, mode="constant", cval=False))


def valid_keys(touching: Tensor) -> Tensor:
    """Centers of the patches that lie within the image and outside a mask, bool ``[H, W]``.

    Args:
        touching: bool ``[H, W]``, :func:`patches_touching` of the pixels that may not be copied.
    """
    valid, border = ~touching, PATCH_RADIUS
    valid[:border], valid[-border:], valid[:, :border], valid[:, -border:] = False, False, False, False
    return valid
