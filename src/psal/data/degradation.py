"""Bicubic downscaling as MATLAB's ``imresize``, which super-resolution benchmarks are made with.

The cubic kernel (a = −0.5) is stretched by the scale, so it also removes what the small picture cannot show. Beyond the
border the picture is mirrored, with the border pixels repeated. Rows are resampled first, then columns, and pictures of
8 bits are rounded after each. Pillow's BICUBIC has the same kernel, but drops what lies beyond the border.
"""

import math

import torch
from torch import Tensor

KERNEL_WIDTH = 4  # pixels of the small picture


def downscale(image: Tensor, scale: int) -> Tensor:
    """Shrink an image by a whole factor.

    Args:
        image: ``(..., H, W)``, uint8 or floating point.
        scale: factor per side, at least 2.

    Returns:
        ``(..., ceil(H / scale), ceil(W / scale))``, of the image's type.

    Raises:
        TypeError: if the image has another type.

    >>> downscale(torch.full((3, 7, 8), 200, dtype=torch.uint8), 2).shape
    torch.Size([3, 4, 4])
    """
    if image.dtype != torch.uint8 and not image.is_floating_point():
        raise TypeError(f"image must be uint8 or floating point, got {image.dtype}")
    for axis in (-2, -1):
        image = _downscale_axis(image, scale, axis)
    return image


def _downscale_axis(image: Tensor, scale: int, axis: int) -> Tensor:
    sources, weights = _taps(image.shape[axis], scale)  # [n, taps]
    exact = image if image.is_floating_point() else image.double()
    shape = [1] * image.ndim
    shape[axis] = -1
    total = torch.zeros((), dtype=exact.dtype)
    for source, weight in zip(sources.T, weights.T, strict=True):
        total = total + exact.index_select(axis, source) * weight.to(exact.dtype).reshape(shape)
    if image.is_floating_point():
        return total
    return total.add(0.5).floor().clamp(0, 255).to(torch.uint8)  # halves are rounded up


def _taps(size: int, scale: int) -> tuple[Tensor, Tensor]:
    """Return the pixels that each small pixel is a mean of, and their weights: each ``(n, taps)``."""
    small = torch.arange(math.ceil(size / scale), dtype=torch.float64)
    center = (small + 0.5) * scale - 0.5
    reach = KERNEL_WIDTH * scale / 2
    position = (center - reach).floor()[:, None] + torch.arange(2 * math.ceil(reach) + 2)
    weight = _cubic((center[:, None] - position) / scale)
    mirrored = position.long().remainder(2 * size)
    return torch.minimum(mirrored, 2 * size - 1 - mirrored), weight / weight.sum(1, keepdim=True)


def _cubic(x: Tensor) -> Tensor:
    """The cubic convolution kernel with a = −0.5 (Keys 1981)."""
    x = x.abs()
    near = 1.5 * x**3 - 2.5 * x**2 + 1
    far = -0.5 * x**3 + 2.5 * x**2 - 4 * x + 2
    return near.where(x <= 1, far.where(x <= 2, 0.0))
