"""Pixels of a grid: coordinates, flat indices, padding.

D is the number of spatial dimensions. A flat index counts pixels in row-major order.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

NORM_EPSILON = 1e-8  # "cosine" raises smaller norms of patches to this


def coordinates_of(shape: Sequence[int], device: torch.device) -> list[Tensor]:
    """Return the coordinates of all N pixels of a grid: D tensors ``(N,)``."""
    return unflatten(torch.arange(math.prod(shape), device=device), shape)


def unflatten(index: Tensor, shape: Sequence[int]) -> list[Tensor]:
    """Convert flat indices to coordinates: D tensors of the index's shape."""
    coordinates = []
    for size in reversed(shape):
        coordinates.append(index % size)
        index = index // size
    return coordinates[::-1]


def flatten(coordinates: Sequence[Tensor], shape: Sequence[int]) -> Tensor:
    """Convert coordinates, D tensors of one shape, to flat indices of that shape."""
    index = torch.zeros_like(coordinates[0])
    for coordinate, size in zip(coordinates, shape, strict=True):
        index = index * size + coordinate
    return index


def inside(coordinates: Sequence[Tensor], shape: Sequence[int]) -> Tensor:
    """Return where coordinates, D tensors of one shape, lie inside the grid: bool of that shape."""
    found = torch.ones_like(coordinates[0], dtype=torch.bool)
    for coordinate, size in zip(coordinates, shape, strict=True):
        found = found & (coordinate >= 0) & (coordinate < size)
    return found


def clamp(coordinates: Sequence[Tensor], shape: Sequence[int]) -> list[Tensor]:
    """Move coordinates outside the grid to its border."""
    return [coordinate.clamp(0, size - 1) for coordinate, size in zip(coordinates, shape, strict=True)]


def gather(x: Tensor, index: Tensor) -> Tensor:
    """Read a flattened map ``(B, C, M)`` at flat indices ``(B, m, N)``: ``(B, C, m, N)``."""
    flat = index.flatten(1)[:, None].expand(-1, x.shape[1], -1)  # [B, C, m · N]
    return x.gather(2, flat).reshape(*x.shape[:2], *index.shape[1:])


def pad(x: Tensor, sides: Sequence[int], padding_mode: str) -> Tensor:
    """Extend a map ``(B, C, *S)`` by half a patch at both ends of every spatial axis.

    Unlike :func:`torch.nn.functional.pad`, reflection works for borders wider than the map.
    """
    for axis, side in enumerate(sides, start=2):
        source = padding_source(x.shape[axis], side // 2, padding_mode, x.device)  # [size + 2 · border]
        x = x.index_select(axis, source.clamp_min(0))
        x = x.masked_fill((source < 0).reshape(-1, *[1] * (x.ndim - 1 - axis)), 0)
    return x


def padding_source(size: int, border: int, padding_mode: str, device: torch.device) -> Tensor:
    """Return which pixel each position of a padded axis copies, −1 for a zero: ``(size + 2 · border,)``."""
    position = torch.arange(-border, size + border, device=device)
    if padding_mode == "replicate":
        return position.clamp(0, size - 1)
    if padding_mode == "reflect":
        period = max(2 * (size - 1), 1)
        position = position.remainder(period)
        return torch.minimum(position, period - position).clamp_max(size - 1)
    return position.masked_fill((position < 0) | (position >= size), -1)


def window_sums(x: Tensor, sides: Sequence[int]) -> Tensor:
    """Sum ``(B, *(S + sides − 1))`` over every patch: ``(B, *S)``. By slices: a running sum would spread NaN."""
    for axis, side in enumerate(sides, start=1):
        size = x.shape[axis] - side + 1
        total = x.narrow(axis, 0, size)
        for start in range(1, side):
            total = total + x.narrow(axis, start, size)
        x = total
    return x


def inverse_norms(padded: Tensor, sides: Sequence[int]) -> Tensor:
    """Return 1 / ‖patch‖ for every patch of a padded map ``(B, C, *(S + sides − 1))``: ``(B, *S)``."""
    return window_sums(padded.square().sum(1), sides).clamp_min(NORM_EPSILON**2).rsqrt()
