"""Bicubic resizing, halving and back-projection."""

import torch
import torch.nn.functional as F
from torch import Tensor

BACK_PROJECTIONS = 6  # leave a largest error of about half an 8-bit level
CLAMPED_BACK_PROJECTIONS = 20  # at most: clamping slows the convergence
RELAXATION = 1.5  # shrinking what was enlarged has eigenvalues in 0.2..1; 1.5 is best for both ends


def resize(x: Tensor, size: tuple[int, int]) -> Tensor:
    """Resize bicubically, with antialiasing when shrinking: as Pillow's BICUBIC, but without rounding to 8 bits.

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
    """Halve a map ``[C, H, W]`` by means of 2 × 2 pixels; the last row or column of an odd side is averaged alone."""
    return F.avg_pool2d(x[None], 2, ceil_mode=True)[0]


def back_project(
    large: Tensor, small: Tensor, *, rounds: int = BACK_PROJECTIONS, clamp: bool = False, tolerance: float = 0.0
) -> Tensor:
    """Change a large map so that :func:`resize` turns it into the small one.

    After Irani and Peleg, "Improving Resolution by Image Registration" (1991): each round adds the enlarged error.

    Args:
        large: ``(B, C, H, W)``.
        small: ``(B, C, h, w)``, not larger.
        rounds: at most this many rounds; each removes at least a third of the error.
        clamp: keep the values in 0..1, and clamp after shrinking too, as 8-bit pictures do. Converges more slowly.
        tolerance: largest error of a channel at which no further round is needed. 0 runs all rounds.

    Returns:
        ``(B, C, H, W)``

    >>> import torch
    >>> small = torch.rand(1, 1, 9, 7)
    >>> large = back_project(torch.zeros(1, 1, 18, 14), small, rounds=40)
    >>> bool((resize(large, (9, 7)) - small).abs().max() < 1e-3)
    True
    """
    out = torch.empty_like(large)
    for channel in range(large.shape[1]):  # one at a time, as large maps take much memory
        wanted, found = small[:, channel : channel + 1], large[:, channel : channel + 1]
        for _ in range(rounds):
            shrunk = resize(found, (wanted.shape[-2], wanted.shape[-1]))
            error = wanted - (shrunk.clamp_(0, 1) if clamp else shrunk)
            if tolerance and float(error.abs().max()) <= tolerance:
                break
            found = resize(error, (found.shape[-2], found.shape[-1])).mul_(RELAXATION).add_(found)
            if clamp:
                found.clamp_(0, 1)
        out[:, channel : channel + 1] = found
    return out


def enlarge(small: Tensor, size: tuple[int, int]) -> Tensor:
    """Enlarge bicubically, then sharpen by back-projection. Adds no detail that the small map does not contain."""
    return back_project(resize(small, size), small)
