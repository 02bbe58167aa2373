"""Optical flow: how far two fields are apart, how well one explains a frame, and its colors."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor


def end_point_distance(flow: Tensor, other: Tensor) -> Tensor:
    """Distance of the end points of two flows ``(B, 2, H, W)`` at each pixel: ``(B, H, W)``."""
    return (flow - other).square().sum(1).sqrt()


def warp(other: Tensor, flow: Tensor) -> Tensor:
    """Sample a frame where the flow points to (bilinear); positions beyond its border take the border's color.

    Args:
        other: ``(B, C, H, W)``, the frame that the flow leads to.
        flow: ``(B, 2, H, W)``: x and y, in pixels.

    Returns:
        ``(B, C, H, W)``, an estimate of the frame that the flow starts from.
    """
    height, width = other.shape[2:]
    y, x = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    position = torch.stack([x, y], -1) + flow.movedim(1, -1)  # [B, H, W, 2]
    # grid_sample's −1 and 1 are the outer edges of the border pixels, whose centers are at 0 and width − 1.
    scaled = (2 * position + 1) / position.new_tensor([width, height]) - 1
    return F.grid_sample(other, scaled, padding_mode="border", align_corners=False)


def psnr(image: Tensor, other: Tensor) -> float:
    """Peak signal-to-noise ratio of images in 0..1, in dB."""
    return -10 * math.log10((image - other).square().mean().item())


def colors(flow: Tensor, largest: float) -> Tensor:
    """Color a flow: the hue is its direction (red is right, then yellow-green is down), the saturation its length.

    Args:
        flow: ``(B, 2, H, W)``.
        largest: length in pixels of full saturation.

    Returns:
        ``(B, 3, H, W)`` in 0..1; white is no motion.
    """
    hue = torch.atan2(flow[:, 1], flow[:, 0]) * (3 / math.pi)  # [B, H, W], in sixths of the circle
    saturation = (flow.square().sum(1).sqrt() / largest).clamp(max=1)
    sectors = [(hue + start) % 6 for start in (5, 3, 1)]  # of red, green and blue
    return torch.stack([1 - saturation * torch.minimum(s, 4 - s).clamp(0, 1) for s in sectors], 1)
