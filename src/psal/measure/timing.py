"""Timing: warm-up, interleaved runs, medians with their spread, and a record of what they were measured on."""

import shlex
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tqdm import tqdm

from psal.measure import machine

PACKAGES = ("torch", "numpy", "faiss-cpu", "pypatchmatch", "scikit-image", "pillow")
QUIET_AFTER = 3.0  # seconds without a progress bar


@dataclass(frozen=True)
class Case:
    """One of the things compared: ``run(prepare())``, of which only ``run`` is timed."""

    run: Callable[[Any], object]
    prepare: Callable[[], Any] = lambda: None


@dataclass
class Timing:
    """Seconds of every run of one case, in the order of the rounds."""

    seconds: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def quartiles(self) -> tuple[float, float]:
        return quartiles(self.seconds)

    def record(self) -> dict[str, Any]:
        """What goes into the JSON."""
        return {"median": self.median, "quartiles": list(self.quartiles), "seconds": self.seconds}


@dataclass(frozen=True)
class Ratio:
    """One time over another: the ratio of the medians, and the quartiles of the ratios of single rounds."""

    value: float
    low: float
    high: float


def measure(cases: Mapping[str, Case], *, runs: int, warm_up: int = 2, label: str = "timing") -> dict[str, Timing]:
    """Time several cases against each other, in rounds that run each of them once.

    Whatever disturbs the machine for a while then disturbs all of them alike; every other round goes backwards, so
    that none always follows the same one.

    Args:
        cases: by name.
        runs: timed rounds.
        warm_up: rounds before that, not timed.
        label: of the progress bar, which appears after three seconds.

    Returns:
        A :class:`Timing` for every case.
    """
    timings = {name: Timing() for name in cases}
    order = list(cases.items())
    bar = tqdm(range(warm_up + runs), desc=label, delay=QUIET_AFTER, leave=False, disable=None)
    for round_number in bar:
        for name, case in order if round_number % 2 else order[::-1]:
            prepared = case.prepare()
            start = time.perf_counter()
            result = case.run(prepared)
            elapsed = time.perf_counter() - start
            del prepared, result  # freed outside the timed part, and before the next case needs memory
            if round_number >= warm_up:
                timings[name].seconds.append(elapsed)
    return timings


def ratio(over: Timing, under: Timing) -> Ratio:
    """Median time of ``over`` by that of ``under``, which were measured in the same rounds."""
    rounds = [a / b for a, b in zip(over.seconds, under.seconds, strict=True)]
    low, high = quartiles(rounds)
    return Ratio(over.median / under.median, low, high)


def quartiles(numbers: list[float]) -> tuple[float, float]:
    """First and third quartile; of a single number, itself."""
    if len(numbers) < 2:
        return numbers[0], numbers[0]
    low, _, high = statistics.quantiles(numbers, n=4, method="inclusive")
    return low, high


def metadata(module: str) -> dict[str, Any]:
    """The machine, the versions, the commit, the command and the date."""
    return machine.metadata(f"python -m benchmarks.{module} {shlex.join(sys.argv[1:])}", PACKAGES)
