"""Cost at sizes that are not run, computed from smaller ones."""

import pytest

from psal.experiments.gmflow.cost import extrapolate

MEASURED = {"seconds": 10.0, "attention_seconds": 2.0, "peak": 900, "attention_peak": 500, "runs": 3, "threads": 2}


@pytest.mark.parametrize(
    ("attention", "seconds", "peak"),
    [("full-materialized", 2.0 * 16, 500 * 16), ("full-chunked", 2.0 * 16, 500 * 4), ("psal4", 2.0 * 4, 500 * 4)],
)
def test_layers_grow_by_their_own_law_and_the_rest_linearly(attention: str, seconds: float, peak: float) -> None:
    computed = extrapolate(MEASURED, attention, (10, 20), (20, 40))
    assert computed == {
        "computed_from": [10, 20], "attention_seconds": seconds,
        "attention_peak": peak, "peak": 400 * 4 + peak,
    }  # fmt: skip
