"""One cell: operations by known formulas, memory at least what must be there."""

import pytest

from psal.experiments.cell import Setting, gigaflops, measure

SIZE, CHANNELS = 16, 16
PIXELS, NUMBERS = SIZE**2, CHANNELS * 7**2
PRODUCTS = 2 * PIXELS**2 * NUMBERS / 1e9  # of all pairs of patches


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("full-materialized", PRODUCTS + 2 * PIXELS**2 * CHANNELS / 1e9),
        ("full-chunked", PRODUCTS + 2 * PIXELS**2 * CHANNELS / 1e9),
        ("full", 2 * PRODUCTS * (NUMBERS + 1) / NUMBERS),  # the values are as wide as the patches there
        ("linear", 2 * 2 * PIXELS * NUMBERS * (CHANNELS + 1) / 1e9),
    ],
)
def test_operations_are_those_of_the_formula(name: str, expected: float) -> None:
    assert gigaflops(Setting(name, SIZE)) == pytest.approx(expected)


@pytest.mark.parametrize("name", ["full-materialized", "full", "local", "performer", "reformer", "psal3"])
def test_backward_costs_more_than_forward(name: str) -> None:
    assert gigaflops(Setting(name, SIZE, backward=True)) > 1.1 * gigaflops(Setting(name, SIZE))


def test_the_matrix_of_all_pairs_is_in_the_peak() -> None:
    matrix = 48**4 * 4
    full, psal3 = (measure(Setting(name, 48, threads=1)) for name in ("full-materialized", "psal3"))
    assert full["peak"] > 2 * matrix  # scores and weights
    assert psal3["peak"] < matrix / 4


def test_a_failed_cell_says_which_and_why() -> None:
    with pytest.raises(RuntimeError, match=r"psal99999 at 16² failed: .*neighbors must not exceed the 256 keys"):
        measure(Setting("psal99999", 16))
