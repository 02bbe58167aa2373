"""Quality of upscale against bicubic interpolation."""

import numpy as np
from PIL import Image

import psal
from benchmarks.editing.photographs import Photographs
from benchmarks.editing.quality import psnr_of_luma
from psal.measure.quantities import Quantities
from psal.measure.record import Cell
from psal.measure.terminal import track

SEED = 0


def upscale(photographs: Photographs) -> Cell:
    """Super-resolution of Urban100 against bicubic interpolation."""
    gains, bicubics = [], []
    for path in track(photographs.files("Urban100/HR"), "Urban100"):
        original = photographs.load(path)
        height, width = (side // 2 * 2 for side in original.shape[:2])
        original = original[:height, :width]
        small = Image.fromarray(original).resize((width // 2, height // 2), Image.Resampling.BICUBIC)
        bicubics.append(psnr_of_luma(np.asarray(small.resize((width, height), Image.Resampling.BICUBIC)), original))
        gains.append(psnr_of_luma(psal.upscale(np.asarray(small), 2, seed=SEED), original) - bicubics[-1])
    found = Quantities("upscale ×2, Urban100")
    found.add("PSNR, difference", gains, against="bicubic", unit="dB")
    found.add("PSNR of bicubic", bicubics, unit="dB")
    return found.cell()
