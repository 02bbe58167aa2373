"""Change the size of a map, and find the enlargement that a small map came from."""

import torch.nn.functional as F
from torch import Tensor

BACK_PROJECTIONS = 6  # leave about half a level of 255 of the largest error
RELAXATION = 1.5  # the eigenvalues of shrinking what was enlarged lie between 0.2 and 1: 1.5 is the best for both ends
CLAMPED_BACK_PROJECTIONS = 20


def resize(x: Tensor, size: tuple[int, int]) -> Tensor:
    """Bicubic, with antialiasing where it shrinks: what Pillow's BICUBIC does, without its rounding to 8 bit.

    Args:
        x: ``(B, C, H, W)``.
        size: (H, W) of the result.

    Returns:
        ``(B, C, *size)``, not clamped.

    >>> import torch
    >>> resize(torch.rand(1, 3, 8, 9), (5, 21)).shape
    torch.Size([1, 3, 5, 21])
    """
    return F.interpolate(x, size, mode="bicubic", antialias=True, align_corners=False)


def halve(x: Tensor) -> Tensor:
    """Means of 2 × 2 pixels of a map ``[C, H, W]``; windows that stick out of an odd side average what they cover."""
    return F.avg_pool2d(x[None], 2, ceil_mode=True)[0]


def back_project(large: Tensor, small: Tensor, *, rounds: int = BACK_PROJECTIONS, clamp: bool = False) -> Tensor:
    """Change a large map as little as needed for :func:`resize` to give the small one again.

    After Irani and Peleg, "Improving Resolution by Image Registration" (1991): each round adds the enlarged error.

    Args:
        large: ``(B, C, H, W)``.
        small: ``(B, C, h, w)``, not larger.
        rounds: how many; each takes away a third of the error or more.
        clamp: keep the values in 0..1, and let shrinking clamp too, as it does in 8 bit. Converges more slowly.

    Returns:
        ``(B, C, H, W)``

    >>> import torch
    >>> small = torch.rand(1, 1, 9, 7)
    >>> large = back_project(torch.zeros(1, 1, 18, 14), small, rounds=40)
    >>> bool((resize(large, (9, 7)) - small).abs().max() < 1e-3)
    True
    """
    for _ in range(rounds):
        shrunk = resize(large, (small.shape[-2], small.shape[-1]))
        error = small - (shrunk.clamp(0, 1) if clamp else shrunk)
        large = large + RELAXATION * resize(error, (large.shape[-2], large.shape[-1]))
        if clamp:
            large = large.clamp(0, 1)
    return large


def enlarge(small: Tensor, size: tuple[int, int]) -> Tensor:
    """The bicubic enlargement, sharpened by back-projection: no detail in it that the small map doesn't hold."""
    return back_project(resize(small, size), small)
