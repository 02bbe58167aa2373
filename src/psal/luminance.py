"""Split colors into luminance and chroma, and join them again without changing the luminance.

Luminance is the luma of Rec. 601, Y = 0.299 R + 0.587 G + 0.114 B of the gamma-encoded values; chroma is R − Y and
B − Y. Both are linear in the color, so they commute with averaging.
"""

import torch
from torch import Tensor

RED, GREEN, BLUE = 0.299, 0.587, 0.114


def luminance(color: Tensor) -> Tensor:
    """Return the luma ``[1, H, W]`` of an image ``[C, H, W]``, C 1 or 3; a gray image is its own luma."""
    if len(color) == 1:
        return color
    return (RED * color[0] + GREEN * color[1] + BLUE * color[2])[None]


def chroma(color: Tensor) -> Tensor:
    """Return the chroma R − Y and B − Y, ``[2, H, W]``, of an image ``[3, H, W]``."""
    return color[0::2] - luminance(color)


def join(luma: Tensor, chroma: Tensor) -> Tensor:
    """Return the color with exactly this luma and, within the RGB gamut, this chroma.

    Chroma outside the gamut is scaled toward gray, because clipping the channels would change the luma.

    Args:
        luma: ``[1, H, W]``, 0..1.
        chroma: ``[2, H, W]``, as :func:`chroma` returns it.

    Returns:
        ``[3, H, W]``, 0..1

    >>> join(torch.full((1, 1, 1), 0.5), torch.zeros(2, 1, 1)).flatten()
    tensor([0.5000, 0.5000, 0.5000])
    """
    green = (RED * chroma[0] + BLUE * chroma[1]) / -GREEN
    color = torch.stack([chroma[0], green, chroma[1]])  # [3, H, W], luma 0
    scale = torch.ones_like(luma)
    for channel in color:
        room = torch.where(channel > 0, 1 - luma[0], luma[0])
        torch.minimum(scale[0], room / channel.abs().clamp_min(1e-12), out=scale[0])
    return color.mul_(scale).add_(luma).clamp_(0, 1)
