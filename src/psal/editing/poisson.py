"""The Poisson equation on a map with a mask, by conjugate gradients with a multigrid cycle as preconditioner.

Masks are of any shape, so a coarser grid is not the same equation for a coarser mask, which would lose small islands
of known pixels: it is the fine equation for maps that the coarser grid interpolates (Galerkin). And conjugate
gradients converge wherever a single cycle, which is symmetric, does little.
"""

from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

TOLERANCE = 1 / 1024  # what a further cycle may still change, anywhere
MOST_CYCLES = 100  # 3 to 7 are usual
RELAXATION = 0.8
FEW = 16  # unknowns that need no coarser grid
FINAL_SMOOTHINGS = 20

Matrix = Any  # sparse, compressed rows
Mask = NDArray[np.bool_]  # [h, w]
Values = NDArray[np.float32]  # [n, C]


class Grid(NamedTuple):
    """One size of the map, with n unknowns."""

    matrix: Matrix  # [n, n], symmetric and positive: screening less the Laplacian
    step: Values  # [n, 1], of Jacobi's relaxation
    interpolation: Matrix | None  # [n, m], from the m unknowns of the next coarser grid; None if there is none


def solve_poisson(right_side: Tensor, inside: Tensor, real: Tensor, screening: float = 0.0) -> Tensor:
    """Solve Δx − screening · x = right_side inside, x = 0 around it; nothing flows to pixels that are not real.

    Args:
        right_side: ``[C, h, w]``.
        inside: bool ``[h, w]``; without screening, each part of it touches a real pixel that is not inside.
        real: bool ``[h, w]``, at least where inside is.
        screening: at least 0; what happens at one place fades over 1 / √screening pixels.

    Returns:
        x ``[C, h, w]``, to about twice ``TOLERANCE``.
    """
    x = torch.zeros_like(right_side)
    if inside.any():
        grids = _make_grids(inside.numpy(), real.numpy(), screening)
        rest = -right_side[:, inside].T.contiguous().numpy()
        x[:, inside] = torch.from_numpy(_conjugate_gradients(rest, grids)).T
    return x


def divergence(across: Tensor, along: Tensor) -> Tensor:
    """Of a flow from each pixel to the next, ``[C, h, w − 1]`` and ``[C, h − 1, w]``, to ``[C, h, w]``."""
    return F.pad(across, (1, 1)).diff(dim=2) + F.pad(along, (0, 0, 1, 1)).diff(dim=1)


def _conjugate_gradients(rest: Values, grids: list[Grid]) -> Values:
    """Solve for each column of what is on the right side."""
    matrix = grids[0].matrix
    x, direction = np.zeros_like(rest), np.zeros_like(rest)
    power = np.ones_like(rest[0])
    for _ in range(MOST_CYCLES):
        change = _cycle(rest, grids)  # close to all that is missing
        if np.abs(change).max() < TOLERANCE:
            return x + change
        before, power = power, (rest * change).sum(0)
        direction = change + direction * _quotient(power, before)
        image = matrix @ direction
        length = _quotient(power, (direction * image).sum(0))
        x += length * direction
        rest = rest - length * image
    return x


def _quotient(a: Values, b: Values) -> Values:
    """a / b, or 0 where a channel is solved already."""
    return np.divide(a, b, out=np.zeros_like(a), where=b > 0)


def _cycle(rest: Values, grids: list[Grid]) -> Values:
    """An approximate solution, by the same symmetric positive map of any right side."""
    (matrix, step, interpolation), *coarser = grids
    x = step * rest
    if interpolation is None:
        for _ in range(FINAL_SMOOTHINGS):
            x += step * (rest - matrix @ x)
        return x
    x += interpolation @ _cycle(interpolation.T @ (rest - matrix @ x), coarser)
    x += step * (rest - matrix @ x)
    return x


def _make_grids(inside: Mask, real: Mask, screening: float) -> list[Grid]:
    matrix = _minus_laplacian(inside, real, screening)
    grids = []
    while matrix.shape[0] > FEW and inside[::2, ::2].any():
        interpolation = _interpolation(inside, real)
        grids.append(Grid(matrix, _step(matrix), interpolation))
        matrix = interpolation.T.tocsr() @ (matrix @ interpolation)
        inside, real = inside[::2, ::2], real[::2, ::2]
    return [*grids, Grid(matrix, _step(matrix), None)]


def _minus_laplacian(inside: Mask, real: Mask, screening: float) -> Matrix:
    """Screening less the Laplacian, for the pixels inside; where they touch others that are real, those are 0."""
    number = _number(inside)
    diagonal = np.full(inside.shape, screening, np.float32)
    pairs = []
    for here, there in (np.s_[:, :-1], np.s_[:, 1:]), (np.s_[:-1], np.s_[1:]):
        linked = real[here] & real[there]
        diagonal[here] += linked
        diagonal[there] += linked
        unknown = inside[here] & inside[there]
        pairs.append(np.stack([number[here][unknown], number[there][unknown]]))
    first, second = np.concatenate(pairs, 1)
    itself = number[inside]
    rows, columns = np.concatenate([first, second, itself]), np.concatenate([second, first, itself])
    values = np.concatenate([np.full(2 * len(first), -1, np.float32), diagonal[inside]])
    return sparse.csr_array((values, (rows, columns)), shape=(len(itself), len(itself)))


def _interpolation(inside: Mask, real: Mask) -> Matrix:
    """Bilinear, from every second pixel of every second row; those that are real but not inside are 0."""
    coarse_inside, coarse_real = inside[::2, ::2], real[::2, ::2]
    number = np.pad(_number(coarse_inside), (0, 1), constant_values=-1)
    is_there = np.pad(coarse_real, (0, 1))
    y, x = (place.astype(np.int32) for place in np.nonzero(inside))
    total = np.zeros(len(y), np.float32)
    rows, columns, weights = [], [], []
    for dy in (0, 1):
        for dx in (0, 1):
            weight = (np.where(y % 2, 0.5, 1 - dy) * np.where(x % 2, 0.5, 1 - dx)).astype(np.float32)
            corner = y // 2 + dy, x // 2 + dx
            total += weight * is_there[corner]
            used = np.nonzero((number[corner] >= 0) & (weight > 0))[0].astype(np.int32)
            rows.append(used)
            columns.append(number[corner][used])
            weights.append(weight[used])
    row, shape = np.concatenate(rows), (len(y), int(coarse_inside.sum()))
    values = (np.concatenate(weights) / total[row]).astype(np.float32)  # pixels that are not real don't pull to 0
    return sparse.csr_array((values, (row, np.concatenate(columns))), shape=shape)


def _step(matrix: Matrix) -> Values:
    """As long as Jacobi's relaxation allows, and short enough that it converges for any symmetric matrix."""
    diagonal, total = matrix.diagonal(), abs(matrix).sum(1)
    step: Values = (1 / np.maximum(diagonal / RELAXATION, total / 1.9)).astype(np.float32)[:, None]
    return step


def _number(mask: Mask) -> NDArray[np.int32]:
    """The pixels of a mask counted from 0; −1 elsewhere."""
    number = np.full(mask.shape, -1, np.int32)
    number[mask] = np.arange(mask.sum(), dtype=np.int32)
    return number
