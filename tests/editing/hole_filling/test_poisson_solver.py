import pytest
import torch
from support.holes import box_mask
from support.poisson import direct_solution, masks_with_known_islands

from psal.editing.hole_filling.poisson_solver import divergence, solve_poisson


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
    expected = direct_solution(side, unknown, domain, screening).float()
    torch.testing.assert_close(solved[:, unknown], expected, rtol=2e-4, atol=3e-3)


def test_a_right_side_of_zero_gives_zero() -> None:
    unknown = box_mask(20, 30, (5, 15, 5, 25))
    assert not solve_poisson(torch.zeros(3, 20, 30), unknown, torch.ones_like(unknown)).any()


def test_divergence_counts_what_leaves_each_pixel() -> None:
    across, down = torch.tensor([[[1.0], [2.0]]]), torch.tensor([[[10.0, 20.0]]])
    assert divergence(across, down).equal(torch.tensor([[[11.0, 19.0], [-8.0, -22.0]]]))
