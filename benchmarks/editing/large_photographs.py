"""Time and memory of edits of large photographs, each in a fresh process."""

import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

from benchmarks.editing.edit_cost import measured_edit
from benchmarks.editing.photographs import Photographs
from psal.measure.record import Cell

PHOTOGRAPH, MASK = "highres/images/hifill_1.jpg", "highres/masks/hifill_1.png"
MEGAPIXELS_3, MEGAPIXELS_12 = (2000, 1500), (4000, 3000)
SMOKE_SIZE = (100, 76)
SHIFT, BRIGHTER = 40, 1.33  # pixels and factor, of the reference that colorize gets


def object_removal(photographs: Photographs) -> Cell:
    """Fill an object's mask in 24 megapixels."""
    with tempfile.TemporaryDirectory() as folder:
        files = [photographs.file(path, Path(folder)) for path in (PHOTOGRAPH, MASK)]
        return measured_edit("inpaint, object removal, 24 megapixels", "inpaint", files)[0].cell()


def colorize_12_megapixels(photographs: Photographs) -> Cell:
    """Colorize 12 megapixels from a shifted, brighter copy."""
    image = _resized(photographs, MEGAPIXELS_12)
    brighter = np.roll(np.asarray(image), SHIFT, axis=1).astype(np.float32) * BRIGHTER
    with tempfile.TemporaryDirectory() as folder:
        gray, reference = Path(folder, "gray.png"), Path(folder, "reference.png")
        image.convert("L").save(gray, compress_level=1)
        Image.fromarray(brighter.clip(0, 255).astype(np.uint8)).save(reference, compress_level=1)
        return measured_edit("colorize, 12 megapixels", "colorize", [str(gray), str(reference)])[0].cell()


def upscale_to_12_megapixels(photographs: Photographs) -> Cell:
    return _upscale(photographs, MEGAPIXELS_3, "upscale ×2, 3 to 12 megapixels")


def upscale_to_48_megapixels(photographs: Photographs) -> Cell:
    return _upscale(photographs, MEGAPIXELS_12, "upscale ×2, 12 to 48 megapixels")


def _upscale(photographs: Photographs, size: tuple[int, int], label: str) -> Cell:
    with tempfile.TemporaryDirectory() as folder:
        small = Path(folder, "small.png")
        _resized(photographs, size).save(small, compress_level=1)
        found, cost = measured_edit(label, "upscale", [str(small)], scale=2)
    found.add("CPU seconds per megapixel of the result", [cost["cpu_seconds"] / cost["megapixels"]], unit="s")
    return found.cell()


def _resized(photographs: Photographs, size: tuple[int, int]) -> Image.Image:
    with Image.open(photographs.data / PHOTOGRAPH) as file:
        return file.convert("RGB").resize(SMOKE_SIZE if photographs.max_side else size)
