"""Timing: order of the rounds, medians and quartiles."""

import time

import pytest

from psal.measure.timing import Case, Timing, quartiles, ratio, time_interleaved, time_repeatedly, timed


def test_rounds_alternate_their_order_and_the_warm_up_is_not_counted() -> None:
    order: list[str] = []
    cases = {name: Case(lambda _, name=name: order.append(name)) for name in "ab"}  # type: ignore[misc]
    timings = time_interleaved(cases, rounds=3)
    assert "".join(order) == "baabbaabba"
    assert [len(timings[name].seconds) for name in "ab"] == [3, 3]


def test_preparation_is_not_timed() -> None:
    prepared: list[float] = []

    def prepare() -> None:
        time.sleep(0.01)
        prepared.append(time.perf_counter())

    timing = time_interleaved({"case": Case(lambda _: None, prepare)}, rounds=1)["case"]
    assert timing.median <= time.perf_counter() - prepared[-1]  # however busy the machine is


def test_a_slow_run_is_repeated_less_often() -> None:
    assert len(time_repeatedly(lambda: None, max_runs=4, max_seconds=10).seconds) == 4
    assert len(time_repeatedly(lambda: time.sleep(0.01), max_runs=4, max_seconds=0.005).seconds) == 1


def test_a_ratio_compares_medians_and_spreads_over_rounds() -> None:
    found = ratio(Timing([2.0, 4.0, 6.0]), Timing([1.0, 2.0, 2.0]))
    assert (found.value, found.low, found.high) == (2.0, 2.0, 2.5)


def test_quartiles_of_a_single_value_are_that_value() -> None:
    assert quartiles([3.0]) == (3.0, 3.0)
    assert quartiles([1.0, 2.0, 3.0, 4.0, 5.0]) == (2.0, 4.0)


def test_a_timed_run_returns_its_result() -> None:
    seconds, result = timed(lambda: "result")
    assert result == "result"
    assert seconds >= 0


def test_a_timing_as_json_holds_every_run() -> None:
    assert Timing([1.0, 3.0, 2.0]).as_json() == {
        "median": 2.0,
        "quartiles": [pytest.approx(1.5), pytest.approx(2.5)],
        "seconds": [1.0, 3.0, 2.0],
    }
