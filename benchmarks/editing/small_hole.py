"""A small hole in 24 megapixels against the same hole in a small crop, from array to array."""

import statistics
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
from PIL import Image

import psal
from benchmarks.editing.large_photographs import PHOTOGRAPH
from benchmarks.editing.methods import Mask
from benchmarks.editing.photographs import Photographs
from psal.measure.process import run_in_fresh_process
from psal.measure.quantities import Quantities
from psal.measure.record import Cell
from psal.measure.timing import time_repeatedly

HOLE_SIDE, CROP_SIDE = 40, 640
RUNS = 3
SEED = 0


def small_hole(photographs: Photographs) -> Cell:
    """A hole of 40 × 40 pixels in the middle of 24 megapixels."""
    label = f"inpaint, a hole of {HOLE_SIDE}² in 24 megapixels, in memory"
    with tempfile.TemporaryDirectory() as folder:
        file = photographs.file(PHOTOGRAPH, Path(folder))
        whole, crop = run_in_fresh_process(seconds_to_fill, file, HOLE_SIDE, CROP_SIDE, RUNS, label=label)
    found = Quantities(label)
    found.add("time", whole, unit="s", value=statistics.median(whole))
    found.add(f"time in a crop of {CROP_SIDE}²", crop, unit="s", value=statistics.median(crop))
    return found.cell()


def seconds_to_fill(file: str, hole_side: int, crop_side: int, runs: int) -> list[list[float]]:
    """Times of filling a hole in the middle of a photograph, and in a crop around it. Call this in a fresh process."""
    image = np.asarray(Image.open(file).convert("RGB"))
    height, width = image.shape[:2]
    hole = _middle(height, width, hole_side)
    rows, columns = (_inner(side, crop_side) for side in (height, width))
    crop, crop_hole = (np.ascontiguousarray(x[rows, columns]) for x in (image, hole))
    cases = [(crop, crop_hole), (image, hole)]
    times = [
        time_repeatedly(partial(psal.inpaint, *case, seed=SEED), max_runs=runs, max_seconds=60).seconds
        for case in cases
    ]
    return times[::-1]


def _inner(side: int, length: int) -> slice:
    """The middle of a side."""
    start = max(0, (side - length) // 2)
    return slice(start, min(side, start + length))


def _middle(height: int, width: int, side: int) -> Mask:
    hole = np.zeros((height, width), bool)
    hole[_inner(height, side), _inner(width, side)] = True
    return hole
