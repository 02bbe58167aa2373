"""Maps to measure on: 16 channels of random convolutions, as a network's first layer has them."""

import torch
import torch.nn.functional as F
from torch import Tensor

CHANNELS = 16


def features(image: Tensor) -> Tensor:
    """16 random 3×3 convolutions with ReLU of an image ``(B, C, H, W)``, always the same ones."""
    generator = torch.Generator().manual_seed(0)
    fan_in = image.shape[1] * 9
    weight = torch.randn(CHANNELS, image.shape[1], 3, 3, generator=generator) / fan_in**0.5
    return F.conv2d(image, weight, padding=1).relu()
