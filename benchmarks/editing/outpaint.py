"""Time of extending one megapixel by a quarter on each side."""

import statistics
from functools import partial

import psal
from benchmarks.editing.photographs import Photographs, crop_and_resize
from psal.measure.quantities import Quantities
from psal.measure.record import Cell
from psal.measure.terminal import track
from psal.measure.timing import time_repeatedly

WIDTH, HEIGHT = 1152, 864
SMOKE_WIDTH, SMOKE_HEIGHT = 64, 48
RUNS, MAX_SECONDS = 3, 4.0
SEED = 0


def outpaint(photographs: Photographs) -> Cell:
    """One megapixel, extended by a quarter on each side."""
    width, height = (SMOKE_WIDTH, SMOKE_HEIGHT) if photographs.max_side else (WIDTH, HEIGHT)
    border = (width // 4, width // 4, height // 4, height // 4)
    times = []
    for path in track(photographs.files("highres/images"), "outpaint"):
        run = partial(psal.outpaint, crop_and_resize(path, width, height), *border, seed=SEED)
        times.append(time_repeatedly(run, max_runs=RUNS, max_seconds=MAX_SECONDS).median)
    found = Quantities("outpaint, 1 megapixel by 25 % a side")
    found.add("time", times, unit="s", value=statistics.median(times))
    return found.cell()
