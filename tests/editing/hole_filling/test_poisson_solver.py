import pytest
import torch
import torch.nn.functional as F
from scipy import sparse
from scipy.sparse.linalg import spsolve
from support.holes import box_mask
from torch import Tensor

from psal.editing.hole_filling.poisson_solver import divergence, solve_poisson


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


@pytest.mark.parametrize("screening", [0, 0.01])
@pytest.mark.parametrize("name", masks_with_known_islands())
def test_solution_agrees_with_a_direct_solver(name: str, screening: float) -> None:
    """Guards against coarse grids that lose small islands, which makes the iteration diverge."""
    unknown = masks_with_known_islands()[name]
    domain = torch.ones(67, 90, dtype=torch.bool)
    domain[20:, 45] = unknown[:, 45] = False  # as between two windows of an atlas
    side = torch.randn(2, 67, 90, generator=torch.Generator().manual_seed(1)) * 0.1
    solved = solve_poisson(side, unknown, domain, screening)
    assert not solved[:, ~unknown].any()
    expected = direct_solution(side, unknown, domain, screening)
    torch.testing.assert_close(solved[:, unknown], expected, rtol=2e-4, atol=3e-3)


def direct_solution(side: Tensor, unknown: Tensor, domain: Tensor, screening: float) -> Tensor:
    """Solution at the unknown pixels, ``[C, n]``."""
    height, width = unknown.shape
    across = sparse.diags([-1.0, 1.0], [0, 1], shape=(width - 1, width))
    down = sparse.diags([-1.0, 1.0], [0, 1], shape=(height - 1, height))
    steps = sparse.vstack([sparse.kron(sparse.eye(height), across), sparse.kron(down, sparse.eye(width))])
    links = torch.cat([(domain[:, 1:] & domain[:, :-1]).flatten(), (domain[1:] & domain[:-1]).flatten()]).numpy()
    laplacian = (-steps.T @ sparse.diags(links.astype(float)) @ steps - screening * sparse.eye(height * width)).tocsr()
    rows = unknown.flatten().numpy()
    solution = spsolve(laplacian[rows][:, rows].tocsc(), side[:, unknown].double().numpy().T)
    return torch.from_numpy(solution.T).float()


def test_a_right_side_of_zero_gives_zero() -> None:
    unknown = box_mask(20, 30, (5, 15, 5, 25))
    assert not solve_poisson(torch.zeros(3, 20, 30), unknown, torch.ones_like(unknown)).any()


def test_divergence_counts_what_leaves_each_pixel() -> None:
    across, down = torch.tensor([[[1.0], [2.0]]]), torch.tensor([[[10.0, 20.0]]])
    assert divergence(across, down).equal(torch.tensor([[[11.0, 19.0], [-8.0, -22.0]]]))
