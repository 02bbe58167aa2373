"""Masks for tests."""

import torch
from torch import Tensor


def box_mask(height: int, width: int, *boxes: tuple[int, int, int, int]) -> Tensor:
    """Bool ``[H, W]``, True in each box (top, bottom, left, right)."""
    mask = torch.zeros(height, width, dtype=torch.bool)
    for top, bottom, left, right in boxes:
        mask[top:bottom, left:right] = True
    return mask
