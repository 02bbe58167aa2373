"""Timing: warm-up, interleaved runs, medians with their spread, and a record of what they were measured on."""

import os
import platform
import shlex
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

import psal

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
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": f"python -m benchmarks.{module} {shlex.join(sys.argv[1:])}",
        "commit": _commit(),
        "machine": platform.machine(),
        "system": f"{platform.system()} {platform.release()}",
        "cpu": _cpu_model(),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        "python": platform.python_version(),
        "versions": {"psal": psal.__version__} | {name: _version(name) for name in PACKAGES},
    }


def _commit() -> str:
    """The commit's hash, with ``+`` if the tree was changed since."""
    try:
        head = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
        changed = subprocess.run(["git", "status", "--porcelain"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return head + ("+" if changed.strip() else "")


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
