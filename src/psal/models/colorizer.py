"""The paper's colorization network: it colors a gray image from a color reference."""

import torch
from torch import Tensor, nn

CHANNELS = 16


class Colorizer(nn.Module):
    """Query from the gray image, key and value from the reference, attention, and a convolution to colors.

    It follows the training script that the paper's authors published: each map is a 3 × 3 convolution followed by ReLU,
    and the colors are computed from the gray image and the attended values together. The weights start at torch's
    defaults.

    Args:
        attention: any layer ``(query, key, value) -> output`` on ``(B, 16, H, W)`` maps, of psal or psal.baselines.

    >>> import torch
    >>> from psal import PatchAttention
    >>> gray, reference = torch.rand(1, 1, 16, 20), torch.rand(1, 3, 18, 16)
    >>> Colorizer(PatchAttention())(gray, reference).shape
    torch.Size([1, 3, 16, 20])
    """

    def __init__(self, attention: nn.Module) -> None:
        super().__init__()
        self.query = nn.Sequential(nn.Conv2d(3, CHANNELS, 3, padding=1), nn.ReLU())
        self.key = nn.Sequential(nn.Conv2d(3, CHANNELS, 3, padding=1), nn.ReLU())
        self.value = nn.Sequential(nn.Conv2d(3, CHANNELS, 3, padding=1), nn.ReLU())
        self.attention = attention
        self.color = nn.Sequential(nn.Conv2d(3 + CHANNELS, 3, 3, padding=1), nn.Sigmoid())

    def forward(self, gray: Tensor, reference: Tensor) -> Tensor:
        """Color ``gray`` ``(B, 1, H, W)`` from ``reference`` ``(B, 3, H', W')``: ``(B, 3, H, W)``, all in 0..1."""
        gray = gray.expand(-1, 3, -1, -1)
        attended = self.attention(self.query(gray), self.key(reference), self.value(reference))  # (B, 16, H, W)
        colored: Tensor = self.color(torch.cat([gray, attended], 1))
        return colored
