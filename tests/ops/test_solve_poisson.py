"""The op solve_poisson: against a direct solver, on masks of all kinds."""

import pytest
import torch
from support.holes import box_mask
from support.poisson import direct_solution, masks_with_known_islands
from torch import Tensor

from psal.ops import native

TOLERANCE = 1e-10  # of float64: the error is then rounding alone


def solve(
    side: Tensor, unknown: Tensor, domain: Tensor, screening: float = 0.0, tolerance: float = TOLERANCE
) -> Tensor:
    out: Tensor = torch.ops.psal.solve_poisson(side, unknown, domain, screening, tolerance)
    return out


def right_side(unknown: Tensor, channels: int, dtype: torch.dtype = torch.float64) -> Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(channels, *unknown.shape, generator=generator, dtype=torch.float64).to(dtype) * 0.1


def noise(height: int, width: int, share: float, seed: int = 0) -> Tensor:
    return torch.rand(height, width, generator=torch.Generator().manual_seed(seed)) < share


def shapes() -> dict[str, Tensor]:
    gaps = [(0, 9, n * (n + 3) // 2, n * (n + 3) // 2 + n) for n in range(1, 14)]
    diagonal = torch.eye(41, dtype=torch.bool)
    frame = box_mask(45, 71, (0, 45, 0, 71))
    frame[7:38, 9:60] = False
    return {
        "one pixel": box_mask(5, 7, (2, 3, 3, 4)),
        "one pixel in a corner": box_mask(5, 7, (4, 5, 6, 7)),
        "all of a row but one": box_mask(1, 40, (0, 1, 1, 40)),
        "all of a column but one": box_mask(41, 1, (0, 40, 0, 1)),
        "horizontal line": box_mask(30, 50, (15, 16, 1, 50)),
        "vertical line": box_mask(51, 30, (0, 50, 15, 16)),
        "odd columns": box_mask(33, 40, *((1, 32, x, x + 1) for x in range(1, 39, 2))),
        "odd rows": box_mask(33, 40, *((y, y + 1, 1, 38) for y in range(1, 32, 2))),
        "diagonal": diagonal | diagonal.roll(1, 1) & ~box_mask(41, 41, (40, 41, 0, 41)),
        "dust": noise(61, 83, 0.02),
        "frame": frame,
        "far apart": box_mask(64, 211, (1, 9, 2, 30), (40, 62, 150, 210), (63, 64, 0, 1), (20, 21, 100, 101)),
        "gaps of all widths": ~box_mask(9, 130, *gaps),
    }


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("screening", [0.0, 0.01])
@pytest.mark.parametrize("name", [*shapes(), *masks_with_known_islands()])
def test_solution_is_exact_up_to_the_tolerance(name: str, screening: float, channels: int) -> None:
    unknown = (shapes() | masks_with_known_islands())[name]
    side, domain = right_side(unknown, channels), torch.ones_like(unknown)
    solved = solve(side, unknown, domain, screening)
    assert not solved[:, ~unknown].any()
    expected = direct_solution(side, unknown, domain, screening)
    torch.testing.assert_close(solved[:, unknown], expected, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("seed", range(8))
def test_no_flux_crosses_the_border_of_a_domain_with_holes(seed: int) -> None:
    height, width = 40 + 3 * seed, 91 - 5 * seed
    domain = noise(height, width, 0.9, seed)
    domain[:, 37] = domain[11] = False
    unknown = domain & noise(height, width, 0.7, seed + 100)
    side = right_side(unknown, 2)
    solved = solve(side, unknown, domain, 1e-3)  # screening: noise cuts parts off from all known pixels
    torch.testing.assert_close(solved[:, unknown], direct_solution(side, unknown, domain, 1e-3), rtol=1e-7, atol=1e-7)


def test_a_domain_of_unknown_pixels_alone_is_solved_by_screening() -> None:
    unknown = torch.ones(37, 53, dtype=torch.bool)
    side = right_side(unknown, 1)
    expected = direct_solution(side, unknown, unknown, 0.05)
    torch.testing.assert_close(solve(side, unknown, unknown, 0.05)[:, unknown], expected, rtol=1e-7, atol=1e-7)


def large_mask() -> Tensor:
    """Several strips of rows, some of them almost empty."""
    unknown = ~noise(420, 311, 0.01)
    unknown[200:260, 5:] = False
    return unknown


def test_strips_of_rows_fit_together() -> None:
    unknown = large_mask()
    side, domain = right_side(unknown, 1), torch.ones_like(unknown)
    expected = direct_solution(side, unknown, domain, 0.0)
    torch.testing.assert_close(solve(side, unknown, domain)[:, unknown], expected, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("path", native.simd_paths())
def test_float32_keeps_the_tolerance_on_every_instruction_set(path: str) -> None:
    unknown = masks_with_known_islands()["other lattice"]
    side, domain = right_side(unknown, 3, torch.float32), torch.ones_like(unknown)
    with native.simd_path(path):
        solved = solve(side, unknown, domain, 1e-4, 1e-3)
    expected = direct_solution(side, unknown, domain, 1e-4).float()
    torch.testing.assert_close(solved[:, unknown], expected, rtol=0, atol=2e-3)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_same_bits_on_any_number_of_threads(dtype: torch.dtype) -> None:
    unknown = large_mask()
    side, domain = right_side(unknown, 3, dtype), torch.ones_like(unknown)
    before = torch.get_num_threads()
    try:
        results = []
        for count in (1, 2, 4):
            torch.set_num_threads(count)
            results.append(solve(side, unknown, domain, 0.0, 1e-4))
    finally:
        torch.set_num_threads(before)
    assert results[1].equal(results[0])
    assert results[2].equal(results[0])


@pytest.mark.parametrize("value", [torch.nan, torch.inf, 1e38])
def test_a_right_side_that_overflows_terminates(value: float) -> None:
    unknown = box_mask(50, 60, (5, 45, 5, 55))
    side = right_side(unknown, 2, torch.float32)
    side[0, 20, 20] = value
    solved = solve(side, unknown, torch.ones_like(unknown), 0.0, 1e-3)
    assert not solved[:, ~unknown].any()


def test_values_at_known_pixels_are_ignored() -> None:
    unknown = box_mask(20, 60, (5, 15, 5, 30), (5, 15, 33, 55))
    side, domain = right_side(unknown, 1), torch.ones_like(unknown)
    expected = solve(side, unknown, domain)
    side[:, ~unknown] = torch.nan
    assert solve(side, unknown, domain).equal(expected)


def test_any_strides_are_accepted() -> None:
    unknown = box_mask(24, 31, (3, 20, 4, 30))
    side, domain = right_side(unknown, 3), torch.ones_like(unknown)
    channels_last = side.movedim(0, 2).contiguous().movedim(2, 0)
    expected = solve(side, unknown, domain)
    assert solve(channels_last, unknown.T.contiguous().T, domain.T.contiguous().T).equal(expected)


@pytest.mark.parametrize("shape", [(3, 8, 9), (0, 8, 9), (3, 0, 9), (3, 8, 0)])
def test_nothing_to_solve_gives_zeros(shape: tuple[int, int, int]) -> None:
    unknown = torch.zeros(shape[1:], dtype=torch.bool)
    assert solve(torch.ones(shape), unknown, ~unknown).equal(torch.zeros(shape))
