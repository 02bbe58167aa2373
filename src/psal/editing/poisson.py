"""The Poisson equation on a map with a mask, by multigrid."""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

CYCLES = 5
SMOOTHINGS = 3
RELAXATION = 0.8 / 4


class Grid(NamedTuple):
    """One size of the map."""

    inside: Tensor  # [h, w], 1 where the solution is looked for, 0 where it is 0
    across: Tensor  # [h, w − 1], 1 between neighbours that are both there
    along: Tensor  # [h − 1, w]


def solve_poisson(right_side: Tensor, inside: Tensor, real: Tensor) -> Tensor:
    """Solve Δx = right_side inside, x = 0 around it; nothing flows to pixels that are not real.

    Args:
        right_side: ``[C, h, w]``.
        inside: bool ``[h, w]``.
        real: bool ``[h, w]``.

    Returns:
        x ``[C, h, w]``.
    """
    grids = [_grid(inside, real)]
    while min(inside.shape) > 2:
        inside, real = _quarter(inside.float()) >= 0.75, _quarter(real.float()) > 0
        if not inside.any():
            break
        grids.append(_grid(inside, real))
    x = torch.zeros_like(right_side)
    for _ in range(CYCLES):
        x = _cycle(x, right_side * grids[0].inside, grids)
    return x


def divergence(across: Tensor, along: Tensor) -> Tensor:
    """Of a flow from each pixel to the next, ``[C, h, w − 1]`` and ``[C, h − 1, w]``, to ``[C, h, w]``."""
    total = F.pad(across, (0, 1))
    total[:, :, 1:] -= across
    total[:, :-1] += along
    total[:, 1:] -= along
    return total


def _cycle(x: Tensor, right_side: Tensor, grids: list[Grid]) -> Tensor:
    grid, *coarser = grids
    x = _smooth(x, right_side, grid)
    if coarser:
        rest = _quarter((right_side - _laplacian(x, grid)) * grid.inside) * 4  # a pixel is twice as wide
        correction = _cycle(torch.zeros_like(rest), rest * coarser[0].inside, coarser)
        fine = F.interpolate(correction[None], scale_factor=2, mode="bilinear", align_corners=False)[0]
        x = x + fine[:, : x.shape[1], : x.shape[2]] * grid.inside
    return _smooth(x, right_side, grid)


def _smooth(x: Tensor, right_side: Tensor, grid: Grid) -> Tensor:
    for _ in range(SMOOTHINGS):
        x = x + RELAXATION * (_laplacian(x, grid) - right_side) * grid.inside
    return x


def _laplacian(x: Tensor, grid: Grid) -> Tensor:
    return divergence((x[:, :, 1:] - x[:, :, :-1]) * grid.across, (x[:, 1:] - x[:, :-1]) * grid.along)


def _grid(inside: Tensor, real: Tensor) -> Grid:
    return Grid(inside.float(), (real[:, 1:] & real[:, :-1]).float(), (real[1:] & real[:-1]).float())


def _quarter(x: Tensor) -> Tensor:
    """Means of 2 × 2 pixels, with 0 beyond an odd end."""
    height, width = x.shape[-2:]
    x = F.pad(x, (0, width % 2, 0, height % 2))
    rows = x[..., ::2, :] + x[..., 1::2, :]
    return (rows[..., ::2] + rows[..., 1::2]) / 4
