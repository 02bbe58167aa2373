"""The critics of the inpainting network: one sees the whole picture, one a window with the hole."""

from itertools import pairwise

import torch
from torch import Tensor, nn

WIDTH = 64  # channels of the first layer, in the paper


class Discriminator(nn.Module):
    """Four strided convolutions and a linear layer: how real a square picture looks.

    Args:
        size: side of the pictures, in pixels.
        width: channels of the first layer; the inner ones have up to four times as many.

    >>> Discriminator(size=40, width=8)(torch.rand(2, 3, 40, 40)).shape
    torch.Size([2])
    """

    def __init__(self, size: int, width: int = WIDTH) -> None:
        super().__init__()
        channels = (3, width, 2 * width, 4 * width, 4 * width)
        layers: list[nn.Module] = []
        for before, after in pairwise(channels):
            layers += [nn.Conv2d(before, after, 5, stride=2, padding=2), nn.LeakyReLU(0.2, inplace=True)]
            size = (size + 1) // 2
        self.layers = nn.Sequential(*layers, nn.Flatten(), nn.Linear(channels[-1] * size**2, 1))

    def forward(self, image: Tensor) -> Tensor:
        """Score pictures ``(B, 3, size, size)``: ``(B,)``, higher for real ones."""
        score: Tensor = self.layers(image)
        return score[:, 0]


class Discriminators(nn.Module):
    """The global and the local discriminator.

    Args:
        size: side of the pictures.
        window: side of the windows around holes.
        width: channels of the first layers.
    """

    def __init__(self, size: int, window: int, width: int = WIDTH) -> None:
        super().__init__()
        self.whole = Discriminator(size, width)
        self.local = Discriminator(window, width)

    def forward(self, image: Tensor, window: Tensor) -> Tensor:
        """Score pictures ``(B, 3, size, size)`` and windows of them: ``(B, 2)``, higher for real ones."""
        return torch.stack([self.whole(image), self.local(window)], 1)
