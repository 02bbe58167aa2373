"""Wall-clock timing: interleaved rounds, medians and quartiles."""

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import torch

Result = TypeVar("Result")

WARM_UP_ROUNDS = 2


@dataclass(frozen=True)
class Case:
    """One of several things to compare: ``run(prepare())``, where only ``run`` is timed."""

    run: Callable[[Any], object]
    prepare: Callable[[], Any] = lambda: None


@dataclass
class Timing:
    """Seconds of every timed run of one case, in order."""

    seconds: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def quartiles(self) -> tuple[float, float]:
        return quartiles(self.seconds)

    def as_json(self) -> dict[str, Any]:
        """Median, quartiles and all single times, for a record."""
        return {"median": self.median, "quartiles": list(self.quartiles), "seconds": self.seconds}


@dataclass(frozen=True)
class Ratio:
    """Ratio of two times.

    Attributes:
        value: ratio of the medians.
        low, high: quartiles of the ratios of single rounds.
    """

    value: float
    low: float
    high: float


def timed(run: Callable[[], Result], device: torch.device | None = None) -> tuple[float, Result]:
    """Wall-clock seconds of ``run()``, including the work it leaves pending on a CUDA device, and its result."""
    start = time.perf_counter()
    result = run()
    if device is not None and device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter() - start, result


def seconds_of(run: Callable[[], object], device: torch.device | None = None) -> float:
    """Wall-clock seconds of ``run()``; see :func:`timed`."""
    return timed(run, device)[0]


def time_repeatedly(
    run: Callable[[], object], *, max_runs: int, max_seconds: float, device: torch.device | None = None
) -> Timing:
    """Time ``run()`` several times; a slow one is run less often.

    The first run is a warm-up, unless it alone takes more than half of the time budget: then it counts.

    Args:
        run: what to time.
        max_runs: upper bound on timed runs.
        max_seconds: time budget; no further run starts once the timed runs together exceed it.
        device: CUDA device to synchronize with, if any.
    """
    first = seconds_of(run, device)
    timing = Timing([first] if first > max_seconds / 2 else [])
    while len(timing.seconds) < max_runs and sum(timing.seconds) < max_seconds:
        timing.seconds.append(seconds_of(run, device))
    return timing


def time_interleaved(cases: Mapping[str, Case], *, rounds: int) -> dict[str, Timing]:
    """Time several cases against each other in rounds that run each case once.

    A disturbance of the machine then hits all cases alike. Every other round runs in reverse order, so that no case
    always follows the same one. Two warm-up rounds are not counted.

    Args:
        cases: cases by name.
        rounds: number of timed rounds.

    Returns:
        A :class:`Timing` for every case, with one entry per round.
    """
    timings = {name: Timing() for name in cases}
    order = list(cases.items())
    for index in range(WARM_UP_ROUNDS + rounds):
        for name, case in order if index % 2 else order[::-1]:
            prepared = case.prepare()
            elapsed, result = timed(partial(case.run, prepared))
            del prepared, result  # freed outside the timed part, before the next case allocates
            if index >= WARM_UP_ROUNDS:
                timings[name].seconds.append(elapsed)
    return timings


def ratio(numerator: Timing, denominator: Timing) -> Ratio:
    """Ratio of two timings that were measured in the same rounds."""
    by_round = [a / b for a, b in zip(numerator.seconds, denominator.seconds, strict=True)]
    low, high = quartiles(by_round)
    return Ratio(numerator.median / denominator.median, low, high)


def quartiles(values: Sequence[float]) -> tuple[float, float]:
    """First and third quartile; a single value is both."""
    if len(values) < 2:
        return values[0], values[0]
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, high
