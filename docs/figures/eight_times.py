"""Draw a photograph enlarged eight times, in two steps: ``python docs/figures/eight_times.py``.

Writes ``docs/images/eight_times.webp``; takes a minute. Needs ``psal[edit]``.
"""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont
from skimage import data

import psal

OUT = Path(__file__).parents[1] / "images" / "eight_times.webp"
STEPS = (4, 2)  # factors; 4 is the largest of one call
SIDE = 40  # of the details shown, in pixels of the photograph
DETAILS = ((105, 75), (260, 70))  # their left and top edges
SHOWN, MARGIN, LABEL = 320, 8, 30
Pixels = NDArray[Any]


def main() -> None:
    """Enlarge the photograph in each way, and write details of the results side by side."""
    photograph = np.ascontiguousarray(data.astronaut()[:200, 100:400])
    results = {
        "bicubic": np.asarray(Image.fromarray(photograph).resize(_size(photograph), Image.Resampling.BICUBIC)),
        "patches": _in_steps(photograph, lambda image, scale: psal.upscale(image, scale, seed=0)),
        "network": _in_steps(photograph, lambda image, scale: psal.upscale(image, scale, model="network", seed=0)),
    }
    step = SHOWN + MARGIN
    sheet = Image.new("RGB", (4 * step - MARGIN, LABEL + len(DETAILS) * step - MARGIN), "white")
    draw = ImageDraw.Draw(sheet)
    font = ImageFont.load_default(size=18)
    for column, (label, large) in enumerate({"photograph": photograph, **results}.items()):
        draw.text((column * step + SHOWN // 2, LABEL // 2), label, fill="#263238", font=font, anchor="mm")
        factor = len(large) // len(photograph)
        for row, (left, top) in enumerate(DETAILS):
            detail = large[top * factor : (top + SIDE) * factor, left * factor : (left + SIDE) * factor]
            shown = Image.fromarray(detail).resize((SHOWN, SHOWN), Image.Resampling.NEAREST)
            sheet.paste(shown, (column * step, LABEL + row * step))
    sheet.save(OUT, quality=90)


def _in_steps(image: Pixels, enlarge: Callable[[Pixels, int], Pixels]) -> Pixels:
    for scale in STEPS:
        image = enlarge(image, scale)
        print(f"{image.shape[1]} × {image.shape[0]}")
    return image


def _size(image: Pixels) -> tuple[int, int]:
    height, width = image.shape[:2]
    return math.prod(STEPS) * width, math.prod(STEPS) * height


if __name__ == "__main__":
    main()
