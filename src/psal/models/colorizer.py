"""The paper's colorization network: it colors a gray image from a color reference."""

import math

import torch
from torch import Tensor, nn

from psal.luminance import BLUE, GREEN, RED

CHANNELS = 16
INITIAL_NORM = 2 * math.sqrt(CHANNELS / 3)  # of the query and key filters; with half, aggregation drifts to one key
FILTER_SIMILARITY = 0.8  # of initial key filters to query filters, so that training starts from useful matches


class Colorizer(nn.Module):
    """Query from the gray image, key and value from the reference, attention, and colors added to the gray.

    An untrained network adds the chroma of the matched pixels, and its key filters are correlated with its query
    filters. From unrelated filters training never learns to match and settles on one neutral color for all pixels.

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
        self.query = nn.Conv2d(1, CHANNELS, 3, padding=1, padding_mode="replicate")
        self.key = nn.Conv2d(3, CHANNELS, 3, padding=1, padding_mode="replicate")
        self.value = nn.Conv2d(3, CHANNELS, 3, padding=1, padding_mode="replicate")
        self.attention = attention
        self.color = nn.Conv2d(CHANNELS, 3, 3, padding=1, padding_mode="replicate")
        self._initialize_filters()
        self._initialize_colors()

    def forward(self, gray: Tensor, reference: Tensor) -> Tensor:
        """Color ``gray`` ``(B, 1, H, W)`` from ``reference`` ``(B, 3, H', W')``: ``(B, 3, H, W)``."""
        attended = self.attention(self.query(gray), self.key(reference), self.value(reference))
        colored: Tensor = gray + self.color(attended)
        return colored

    @torch.no_grad()
    def _initialize_filters(self) -> None:
        """Correlate the key filters with the query filters applied to luma; map mid-gray to 0 in both."""
        luma = torch.tensor([RED, GREEN, BLUE]).view(1, 3, 1, 1)
        nn.init.orthogonal_(self.query.weight)  # every direction, the mean included, has the same weight
        nn.init.orthogonal_(self.key.weight)
        for layer in (self.query, self.key):
            layer.weight.mul_(INITIAL_NORM / layer.weight.norm())
        self.key.weight.mul_(math.sqrt(1 - FILTER_SIMILARITY**2)).add_(FILTER_SIMILARITY * luma * self.query.weight)
        for layer in (self.query, self.key):
            layer.bias.copy_(-0.5 * layer.weight.sum((1, 2, 3)))  # type: ignore[union-attr]

    @torch.no_grad()
    def _initialize_colors(self) -> None:
        """Let the first three value channels be the reference's RGB, and add their chroma to the gray."""
        nn.init.dirac_(self.value.weight[:3])
        self.value.bias[:3] = 0  # type: ignore[index]
        nn.init.zeros_(self.color.weight)
        nn.init.zeros_(self.color.bias)  # type: ignore[arg-type]
        self.color.weight[:, :3, 1, 1] = torch.eye(3) - torch.tensor([RED, GREEN, BLUE])
