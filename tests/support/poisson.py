"""Masks of Poisson problems, and a direct solver."""

import torch
import torch.nn.functional as F
from scipy import sparse
from scipy.sparse.linalg import spsolve
from torch import Tensor

from support.holes import box_mask


def masks_with_known_islands() -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(0)
    dots = torch.rand(1, 67, 90, generator=generator) > 0.99
    masks = {
        "box": box_mask(67, 90, (5, 60, 7, 84)),
        "one island": torch.ones(67, 90, dtype=torch.bool),
        "lattice": torch.ones(67, 90, dtype=torch.bool),
        "other lattice": torch.ones(67, 90, dtype=torch.bool),
        "noise": torch.rand(67, 90, generator=generator) < 0.8,
        "strokes": F.max_pool2d(dots.float(), (5, 9), 1, (2, 4))[0] > 0,
    }
    masks["one island"][31:34, 60:62] = False
    masks["lattice"][4::16, 4::16] = False
    masks["other lattice"][5::12, 7::12] = False
    return masks


def direct_solution(side: Tensor, unknown: Tensor, domain: Tensor, screening: float) -> Tensor:
    """Solution at the unknown pixels, float64 ``[C, n]``."""
    height, width = unknown.shape
    across = sparse.diags([-1.0, 1.0], [0, 1], shape=(width - 1, width))
    down = sparse.diags([-1.0, 1.0], [0, 1], shape=(height - 1, height))
    steps = sparse.vstack([sparse.kron(sparse.eye(height), across), sparse.kron(down, sparse.eye(width))])
    links = torch.cat([(domain[:, 1:] & domain[:, :-1]).flatten(), (domain[1:] & domain[:-1]).flatten()]).numpy()
    laplacian = (-steps.T @ sparse.diags(links.astype(float)) @ steps - screening * sparse.eye(height * width)).tocsr()
    rows = unknown.flatten().numpy()
    solution = spsolve(laplacian[rows][:, rows].tocsc(), side[:, unknown].double().numpy().T)
    return torch.from_numpy(solution.reshape(-1, len(side)).T)
