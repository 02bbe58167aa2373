"""Screened Poisson equation on a masked pixel grid: conjugate gradients, preconditioned by a multigrid V-cycle.

Masks have any shape, so the coarse grids are not discretized again, which would lose small islands of known pixels.
They are Galerkin products Pᵀ A P with bilinear interpolation P. Conjugate gradients keep the convergence fast where a
V-cycle alone is weak.

Compared with libraries on one thread. A: object removal from 24 megapixels, 573,000 unknowns, three channels; B: three
holes of 48² pixels. Largest error 5e-4 or less, where not stated.

===============================================  ======  =======  =====
solver                                           A       memory   B
===============================================  ======  =======  =====
this file                                        0.8 s   0.17 GB  14 ms
pyamg 5.4, Ruge-Stüben                           1.4 s   0.18 GB  23 ms
pyamg 5.4, smoothed aggregation                  2.9 s   0.32 GB  30 ms
scipy cg, Jacobi preconditioner (error 2e-3)     3.5 s   0.10 GB  19 ms
scipy splu                                       4.6 s   0.69 GB  18 ms
scipy cg, sine transform of the bounding box     17 s             58 ms
===============================================  ======  =======  =====
"""

import warnings
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from psal.sums import total

TOLERANCE = 1 / 1024  # largest estimated error of a pixel: a quarter of an 8-bit level
MAX_ITERATIONS = 100  # 3 to 7 are usual
DAMPING = 0.8  # of Jacobi smoothing; the textbook value for the five-point Laplacian
MAX_COARSEST_UNKNOWNS = 16  # small enough for plain smoothing
COARSEST_SMOOTHINGS = 20
# Weights of the four coarse pixels around a pixel, by the parity of its row and column.
CORNER_WEIGHTS = np.array([[1, 0, 0, 0], [0.5, 0.5, 0, 0], [0.5, 0, 0.5, 0], [0.25] * 4], np.float32)

Matrix = Any  # scipy.sparse.csr_array
Mask = NDArray[np.bool_]  # [h, w]
Values = NDArray[np.float32]  # [n, C]


class Grid(NamedTuple):
    """One level of the multigrid hierarchy, with n unknowns. Its matrices are torch's, which uses several threads."""

    matrix: Tensor  # sparse [n, n], symmetric positive definite
    smoothing_step: Tensor  # [n, 1], damped inverse of the diagonal
    interpolation: Tensor | None  # sparse [n, m], from the m unknowns of the next coarser grid; None on the coarsest
    restriction: Tensor | None  # sparse [m, n], its transpose


def solve_poisson(right_side: Tensor, unknown: Tensor, domain: Tensor, screening: float = 0.0) -> Tensor:
    """Solve Δx − screening · x = right_side for the unknown pixels.

    The other pixels of the domain are fixed to 0 (Dirichlet); no flux crosses the border of the domain (Neumann).

    Args:
        right_side: ``[C, h, w]``.
        unknown: bool ``[h, w]``. Without screening, each connected part must touch a fixed pixel.
        domain: bool ``[h, w]``, True at least at the unknown pixels.
        screening: at least 0; the influence of a pixel fades over about 1 / √screening pixels.

    Returns:
        x ``[C, h, w]``, accurate to about twice ``TOLERANCE``; 0 outside the unknown pixels.
    """
    x = torch.zeros_like(right_side)
    if unknown.any():
        grids = _build_grids(unknown.numpy(), domain.numpy(), screening)
        residual = -right_side[:, unknown].T.contiguous()
        x[:, unknown] = _conjugate_gradients(grids, residual).T
    return x


def divergence(across: Tensor, down: Tensor) -> Tensor:
    """Divergence ``[C, h, w]`` of flows to the next pixel, ``[C, h, w − 1]`` and ``[C, h − 1, w]``."""
    return F.pad(across, (1, 1)).diff(dim=2) + F.pad(down, (0, 0, 1, 1)).diff(dim=1)


def _conjugate_gradients(grids: list[Grid], residual: Tensor) -> Tensor:
    """Solve for all channels as one block-diagonal system, ``[n, C]``.

    scipy's ``cg`` would do, but its dot products come from BLAS, whose bits can depend on the number of threads.
    """
    matrix = grids[0].matrix
    x, direction = torch.zeros_like(residual), torch.zeros_like(residual)
    power = torch.tensor(torch.inf)
    for _ in range(MAX_ITERATIONS):
        correction = _v_cycle(grids, residual)  # close to the whole error
        if correction.abs().max() < TOLERANCE:
            return x + correction
        previous, power = power, total(residual * correction)
        direction = correction + direction * (power / previous)
        image = matrix @ direction
        step = power / total(direction * image)
        x += step * direction
        residual = residual - step * image
    return x


def _v_cycle(grids: list[Grid], residual: Tensor) -> Tensor:
    """Approximate solution for a residual; a symmetric positive definite linear map of it."""
    (matrix, smoothing_step, interpolation, restriction), *coarser = grids
    x = smoothing_step * residual
    if interpolation is None or restriction is None:
        for _ in range(COARSEST_SMOOTHINGS):
            x += smoothing_step * (residual - matrix @ x)
        return x
    x += interpolation @ _v_cycle(coarser, restriction @ (residual - matrix @ x))
    x += smoothing_step * (residual - matrix @ x)
    return x


def _build_grids(unknown: Mask, domain: Mask, screening: float) -> list[Grid]:
    """Hierarchy of grids, finest first."""
    matrix = _screened_laplacian(unknown, domain, screening)
    grids = []
    while matrix.shape[0] > MAX_COARSEST_UNKNOWNS and unknown[::2, ::2].any():
        interpolation = _interpolation(unknown, domain)
        restriction = interpolation.T.tocsr()
        steps = _smoothing_step(matrix)
        grids.append(Grid(_sparse_tensor(matrix), steps, _sparse_tensor(interpolation), _sparse_tensor(restriction)))
        matrix = restriction @ (matrix @ interpolation)
        unknown, domain = unknown[::2, ::2], domain[::2, ::2]
    return [*grids, Grid(_sparse_tensor(matrix), _smoothing_step(matrix), None, None)]


def _screened_laplacian(unknown: Mask, domain: Mask, screening: float) -> Matrix:
    """screening · I − Δ of the unknown pixels: a row has an entry for the pixel and each unknown one beside it."""
    count, width = int(unknown.sum()), unknown.shape[1] + 2
    index = np.full((unknown.shape[0] + 2, width), -2, np.int32)
    inner = index[1:-1, 1:-1]
    inner[domain] = -1
    inner[unknown] = np.arange(count, dtype=np.int32)
    pixel = np.flatnonzero(index >= 0)
    beside = [index.reshape(-1)[pixel + step] for step in (-width, -1, 1, width)]
    diagonal = sum((end > -2).astype(np.float32) for end in beside) + np.float32(screening)
    columns = np.stack([*beside[:2], np.arange(count, dtype=np.int32), *beside[2:]], 1)  # ascending
    values = np.full(columns.shape, -1, np.float32)
    values[:, 2] = diagonal
    return _rows_of(values, columns, columns >= 0, count)


def _interpolation(unknown: Mask, domain: Mask) -> Matrix:
    """Bilinear interpolation from the unknowns at even rows and columns; fixed pixels of the domain count as 0."""
    coarse_unknown, coarse_domain = (np.pad(mask[::2, ::2], (0, 1)) for mask in (unknown, domain))
    count, width = int(coarse_unknown.sum()), coarse_unknown.shape[1]
    coarse_index = np.full(coarse_unknown.size, -1, np.int32)
    coarse_index[coarse_unknown.reshape(-1)] = np.arange(count, dtype=np.int32)
    pixel = np.flatnonzero(unknown).astype(np.int32)
    y, x = np.divmod(pixel, np.int32(unknown.shape[1]))
    corners = (y // 2 * width + x // 2)[:, None] + np.array([0, 1, width, width + 1], np.int32)
    weights = CORNER_WEIGHTS[y % 2 * 2 + x % 2]
    weights /= np.einsum("nc,nc->n", weights, coarse_domain.reshape(-1)[corners])[:, None]  # others don't pull toward 0
    columns = coarse_index[corners]  # ascending
    return _rows_of(weights, columns, (columns >= 0) & (weights > 0), count)


def _rows_of(values: Values, columns: NDArray[np.int32], used: Mask, width: int) -> Matrix:
    """Sparse matrix ``[n, width]`` of the used ones among some entries per row, ``[n, entries]``."""
    starts = np.zeros(len(values) + 1, np.int32)
    np.cumsum(used.sum(1, dtype=np.int32), out=starts[1:])
    return sparse.csr_array((values[used], columns[used], starts), shape=(len(values), width))


def _smoothing_step(matrix: Matrix) -> Tensor:
    """Damped Jacobi step, shortened where Gershgorin's bound on the eigenvalues asks for it."""
    diagonal, bound = matrix.diagonal(), abs(matrix).sum(1)
    step: Values = (1 / np.maximum(diagonal / DAMPING, bound / 1.9)).astype(np.float32)[:, None]
    return torch.from_numpy(step)


def _sparse_tensor(matrix: Matrix) -> Tensor:
    """The same matrix as a tensor: torch multiplies it in half of scipy's time on one thread."""
    starts, columns, values = (torch.from_numpy(part) for part in (matrix.indptr, matrix.indices, matrix.data))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        return torch.sparse_csr_tensor(starts, columns, values, matrix.shape, check_invariants=False)
