"""Fill holes with one method, in a process of its own: ``python -m benchmarks.editing.fill_worker``.

It reads a request from standard input and prints a line for each picture as soon as it is filled, all as JSON: a method
that ends the process with one picture does not lose the others. It does not import torch, so that a peer's memory and
threads are the peer's own.
"""

import contextlib
import json
import os
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from benchmarks.editing.methods import METHODS, Fill, Mask, Pixels

MAX_RUNS, MAX_SECONDS = 3, 2.0  # per picture; a slow method runs once
WARM_UP_SIDE = 64  # pixels


def fill_all(method: str, files: list[dict[str, str]]) -> Iterator[dict[str, Any]]:
    """Fill pictures, and measure it.

    Args:
        method: a name in :data:`METHODS`.
        files: ``image``, ``hole`` and ``filled`` of each picture; the last is written.

    Yields:
        for each picture ``seconds`` and ``cpu_seconds``, medians over runs, and of the process in bytes ``peak``, its
        peak memory so far, and ``before``, what it held before the first picture.
    """
    threads = METHODS[method].threads
    _bind_to_cores(threads)
    fill = METHODS[method].build(threads)
    generator = np.random.default_rng(0)
    image = generator.integers(0, 256, (WARM_UP_SIDE, WARM_UP_SIDE, 3), np.uint8)
    hole = np.zeros((WARM_UP_SIDE, WARM_UP_SIDE), bool)
    hole[24:36, 24:36] = True
    fill(image, hole)
    before = _status("VmRSS")
    for paths in files:
        with Image.open(paths["image"]) as opened, Image.open(paths["hole"]) as mask:
            image, hole = np.array(opened), np.array(mask) > 0
        filled, seconds, cpu_seconds = _timed(fill, image, hole)
        Image.fromarray(np.ascontiguousarray(filled)).save(paths["filled"], compress_level=1)
        yield {"seconds": seconds, "cpu_seconds": cpu_seconds, "before": before, "peak": _status("VmHWM")}


def _timed(fill: Fill, image: Pixels, hole: Mask) -> tuple[Pixels, float, float]:
    seconds: list[float] = []
    cpu_seconds: list[float] = []
    while len(seconds) < MAX_RUNS and sum(seconds) < MAX_SECONDS:
        start, cpu_start = time.perf_counter(), time.process_time()
        filled = fill(image.copy(), hole.copy())
        seconds.append(time.perf_counter() - start)
        cpu_seconds.append(time.process_time() - cpu_start)
    return filled, statistics.median(seconds), statistics.median(cpu_seconds)


def _bind_to_cores(count: int) -> None:
    """Bind the process to some cores, before a package starts its threads."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:count])


def _status(field: str) -> int:
    """A field of Linux's status of this process, in bytes. (The usage that exec hands on has the parent's peak.)"""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(f"{field}:")).split()[1]) * 1024


def main() -> None:
    """Answer the request on standard input."""
    request = json.load(sys.stdin)
    with contextlib.redirect_stdout(sys.stderr):  # standard output is for the result alone
        for found in fill_all(request["method"], request["files"]):
            print(json.dumps(found), file=sys.__stdout__, flush=True)


if __name__ == "__main__":
    main()
