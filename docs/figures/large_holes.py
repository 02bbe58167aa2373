"""Draw what patches make of a large hole, with and without a guide: ``python docs/figures/large_holes.py``.

Writes ``docs/images/large_holes.webp``. Needs ``psal[edit]``.
"""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont
from skimage import data

import psal

OUT = Path(__file__).parents[1] / "images" / "large_holes.webp"
SIDE, MARGIN, LABEL = 260, 8, 30
GUIDE_SCALE = 8  # the guide shows the original at 1/8 of its size: no network knows as much
Pixels = NDArray[Any]
LABELS = ("original", "hole", "filled", "guide", "filled with the guide")


def main() -> None:
    """Fill the holes and write the sheet."""
    rows = [
        fills(data.astronaut(), (20, 150, 250, 350)),
        fills(np.ascontiguousarray(data.chelsea()[:, 30:330]), (50, 40, 250, 240)),
    ]
    step = SIDE + MARGIN
    sheet = Image.new("RGB", (len(LABELS) * step - MARGIN, LABEL + len(rows) * step - MARGIN), "white")
    draw = ImageDraw.Draw(sheet)
    font = ImageFont.load_default(size=18)
    for column, label in enumerate(LABELS):
        draw.text((column * step + SIDE // 2, LABEL // 2), label, fill="#263238", font=font, anchor="mm")
        for row, pictures in enumerate(rows):
            picture = Image.fromarray(pictures[column]).resize((SIDE, SIDE), Image.Resampling.LANCZOS)
            sheet.paste(picture, (column * step, LABEL + row * step))
    sheet.save(OUT, quality=85)


def fills(original: Pixels, box: tuple[int, int, int, int]) -> list[Pixels]:
    """A picture, its hole with edges (top, left, bottom, right), a fill, a guide, and a fill with that guide."""
    top, left, bottom, right = box
    mask = np.zeros(original.shape[:2], np.uint8)
    mask[top:bottom, left:right] = 255
    print(f"the hole is {mask.mean() / 255:.0%} of the picture")
    known = original.copy()
    known[mask > 0] = 255
    small = Image.fromarray(original).reduce(GUIDE_SCALE)
    guide = np.asarray(small.resize(original.shape[1::-1], Image.Resampling.BICUBIC))
    filled, guided = (psal.inpaint(known, mask, guide=given, seed=0) for given in (None, guide))
    return [original, known, filled, guide, guided]


if __name__ == "__main__":
    main()
