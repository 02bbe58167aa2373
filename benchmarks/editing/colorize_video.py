"""Quality of colorize between frames of a video."""

import statistics

import numpy as np
from PIL import Image

import psal
from benchmarks.editing.photographs import Photographs
from benchmarks.editing.quality import mean_square_error
from psal.measure.quantities import Quantities
from psal.measure.record import Cell
from psal.measure.terminal import track

SEED = 0


def colorize_video(photographs: Photographs) -> Cell:
    """Frames colorized from an earlier frame, against the gray frame."""
    gray_errors: list[float] = []
    errors: dict[str, list[float]] = {"patches": [], "network": []}
    for original, reference in track(list(photographs.video_pairs()), "DAVIS"):
        gray = np.asarray(Image.fromarray(original).convert("L"))
        gray_errors.append(mean_square_error(np.repeat(gray[..., None], 3, 2), original))
        for model in errors:
            colorized = psal.colorize(gray, reference, model=model, seed=SEED)
            errors[model].append(mean_square_error(colorized, original))
    found = Quantities("colorize, DAVIS")
    for model, own in errors.items():
        # The error of all pairs together, not the mean of ratios, which a single easy pair would dominate.
        overall = statistics.fmean(gray_errors) / statistics.fmean(own)
        ratios = [b / a for a, b in zip(own, gray_errors, strict=True)]
        quantity = f'`model="{model}"`: error reduction'
        found.add(quantity, ratios, against="gray frame", unit="×", value=overall)
    return found.cell()
