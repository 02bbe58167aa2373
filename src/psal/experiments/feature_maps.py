"""Feature maps to measure on: 16 random convolutions of a picture, like a network's first layer."""

import torch
import torch.nn.functional as F
from torch import Tensor

CHANNELS = 16


def features(image: Tensor) -> Tensor:
    """Apply 16 random 3×3 convolutions and ReLU to an image; the filters are always the same.

    Args:
        image: ``(B, C, H, W)``.

    Returns:
        ``(B, 16, H, W)``
    """
    generator = torch.Generator().manual_seed(0)
    fan_in = image.shape[1] * 9
    weight = torch.randn(CHANNELS, image.shape[1], 3, 3, generator=generator) / fan_in**0.5
    return F.conv2d(image, weight, padding=1).relu()
