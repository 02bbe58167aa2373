"""The smallest network that can use attention: colours for a grey picture from a coloured one."""

from torch import Tensor, nn

CHANNELS = 16


class Colorizer(nn.Module):
    """Query of the grey picture, key and value of the reference, attention, and colours added to the grey.

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

    def forward(self, grey: Tensor, reference: Tensor) -> Tensor:
        """Colour ``grey`` ``(B, 1, H, W)`` with ``reference`` ``(B, 3, H', W')``: ``(B, 3, H, W)``."""
        attended = self.attention(self.query(grey), self.key(reference), self.value(reference))
        colored: Tensor = grey + self.color(attended)
        return colored
