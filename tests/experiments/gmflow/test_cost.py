"""Cost at sizes that are not run, computed from smaller ones."""

import pytest

from psal.experiments.gmflow.cost import extrapolated_memory, extrapolated_time

MEMORY = {"peak": 900, "attention_peak": 500, "threads": 2}
TIME = {"seconds": 10.0, "attention_seconds": 2.0, "runs": 3, "threads": 2}
SIZES = (10, 20), (20, 40)


@pytest.mark.parametrize(
    ("attention", "growth"), [("full-materialized", 16), ("full-chunked", 4), ("exact4", 4), ("psal4", 4)]
)
def test_the_matrix_of_all_pairs_grows_quadratically_and_other_memory_linearly(attention: str, growth: int) -> None:
    peak = 500 * growth
    expected = {"computed_from": [10, 20], "attention_peak": peak, "peak": 400 * 4 + peak}
    assert extrapolated_memory(MEMORY, attention, *SIZES) == expected


@pytest.mark.parametrize(
    ("attention", "growth"), [("full-materialized", 16), ("full-chunked", 16), ("exact4", 16), ("psal4", 4)]
)
def test_time_grows_linearly_with_psal_alone(attention: str, growth: int) -> None:
    expected = {"computed_from": [10, 20], "attention_seconds": 2.0 * growth}
    assert extrapolated_time(TIME, attention, *SIZES) == expected
