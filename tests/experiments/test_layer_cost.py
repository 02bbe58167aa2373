"""Cost of one layer: operations by known formulas, and a plausible peak."""

import pytest

from psal.experiments.layer_cost import LayerSetting, gigaflops, measure

SIZE, CHANNELS = 16, 16
PIXEL_COUNT, PATCH_VALUES = SIZE**2, CHANNELS * 7**2
PRODUCTS = 2 * PIXEL_COUNT**2 * PATCH_VALUES / 1e9  # dot products of all pairs of patches


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("full-materialized", PRODUCTS + 2 * PIXEL_COUNT**2 * CHANNELS / 1e9),
        ("full-chunked", PRODUCTS + 2 * PIXEL_COUNT**2 * CHANNELS / 1e9),
        ("full", 2 * PRODUCTS * (PATCH_VALUES + 1) / PATCH_VALUES),  # sdpa's values are as wide as the patches
        ("linear", 2 * 2 * PIXEL_COUNT * PATCH_VALUES * (CHANNELS + 1) / 1e9),
    ],
)
def test_operations_are_those_of_the_formula(name: str, expected: float) -> None:
    assert gigaflops(LayerSetting(name, SIZE)) == pytest.approx(expected)


@pytest.mark.parametrize("name", ["full-materialized", "full", "local", "performer", "reformer", "psal3"])
def test_backward_costs_more_than_forward(name: str) -> None:
    assert gigaflops(LayerSetting(name, SIZE, backward=True)) > 1.1 * gigaflops(LayerSetting(name, SIZE))


@pytest.mark.slow
def test_the_peak_contains_the_matrix_of_all_pairs() -> None:
    matrix = 48**4 * 4
    full, psal3 = (measure(LayerSetting(name, 48, threads=1)) for name in ("full-materialized", "psal3"))
    assert full["peak"] > 2 * matrix  # scores and weights
    assert psal3["peak"] < matrix / 4


def test_a_failure_names_the_layer_and_the_reason() -> None:
    with pytest.raises(RuntimeError, match=r"psal99999 at 16² failed: .*neighbors must not exceed the 256 keys"):
        measure(LayerSetting("psal99999", 16))
