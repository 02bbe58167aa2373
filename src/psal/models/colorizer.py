"""The smallest network that can use attention: colours for a grey picture from a coloured one."""

import math

import torch
from torch import Tensor, nn

from psal.luminance import BLUE, GREEN, RED

CHANNELS = 16
NORM = 2 * math.sqrt(CHANNELS / 3)  # of query's and key's first filters: with half, aggregation drifts to one key
LIKENESS = 0.8  # of the key's first filters to the query's: enough for matches that training can start from


class Colorizer(nn.Module):
    """Query of the grey picture, key and value of the reference, attention, and colours added to the grey.

    A new network adds the chroma of what its attention finds, and its key's filters are partly the query's: training
    that starts from unlike filters never finds out what to compare, and picks one neutral colour for all pixels.

    Args:
        attention: any layer ``(query, key, value) -> output`` on ``(B, 16, H, W)`` maps, of psal or psal.baselines.

    >>> import torch
    >>> from psal import PatchAttention
    >>> grey, reference = torch.rand(1, 1, 16, 20), torch.rand(1, 3, 18, 16)
    >>> Colorizer(PatchAttention())(grey, reference).shape
    torch.Size([1, 3, 16, 20])
    """

    def __init__(self, attention: nn.Module) -> None:
        super().__init__()
        self.query = nn.Conv2d(1, CHANNELS, 3, padding=1, padding_mode="replicate")
        self.key = nn.Conv2d(3, CHANNELS, 3, padding=1, padding_mode="replicate")
        self.value = nn.Conv2d(3, CHANNELS, 3, padding=1, padding_mode="replicate")
        self.attention = attention
        self.color = nn.Conv2d(CHANNELS, 3, 3, padding=1, padding_mode="replicate")
        self._start_comparing()
        self._start_with_chroma()

    def forward(self, grey: Tensor, reference: Tensor) -> Tensor:
        """Colour ``grey`` ``(B, 1, H, W)`` with ``reference`` ``(B, 3, H', W')``: ``(B, 3, H, W)``."""
        attended = self.attention(self.query(grey), self.key(reference), self.value(reference))
        colored: Tensor = grey + self.color(attended)
        return colored

    @torch.no_grad()
    def _start_comparing(self) -> None:
        """Key filters that are partly the query's on luma; mid-grey is 0 in both, so that they lie about one centre."""
        luma = torch.tensor([RED, GREEN, BLUE]).view(1, 3, 1, 1)
        nn.init.orthogonal_(self.query.weight)  # so that no filter, the mean least of all, counts twice or not at all
        nn.init.orthogonal_(self.key.weight)
        for layer in (self.query, self.key):
            layer.weight.mul_(NORM / layer.weight.norm())
        self.key.weight.mul_(math.sqrt(1 - LIKENESS**2)).add_(LIKENESS * luma * self.query.weight)
        for layer in (self.query, self.key):
            layer.bias.copy_(-0.5 * layer.weight.sum((1, 2, 3)))  # type: ignore[union-attr]

    @torch.no_grad()
    def _start_with_chroma(self) -> None:
        """The first three value channels are the reference's RGB, and their chroma is what is added to the grey."""
        nn.init.dirac_(self.value.weight[:3])
        self.value.bias[:3] = 0  # type: ignore[index]
        nn.init.zeros_(self.color.weight)
        nn.init.zeros_(self.color.bias)  # type: ignore[arg-type]
        self.color.weight[:, :3, 1, 1] = torch.eye(3) - torch.tensor([RED, GREEN, BLUE])
