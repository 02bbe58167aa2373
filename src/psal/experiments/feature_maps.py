"""Feature maps to measure on: random convolutions of a picture, like a network's first layer."""

import torch
import torch.nn.functional as F
from torch import Tensor

CHANNELS = 16


def features(image: Tensor, channels: int = CHANNELS) -> Tensor:
    """Apply random 3×3 convolutions and ReLU to an image; the filters are always the same.

    Args:
        image: ``(B, C, H, W)``.
        channels: number of filters.

    Returns:
        ``(B, channels, H, W)``
    """
    generator = torch.Generator().manual_seed(0)
    fan_in = image.shape[1] * 9
    weight = torch.randn(channels, image.shape[1], 3, 3, generator=generator) / fan_in**0.5
    return F.conv2d(image, weight, padding=1).relu()
