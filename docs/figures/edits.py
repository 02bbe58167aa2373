"""Draw the four edits of the sample pictures, before and after: ``python docs/figures/edits.py``.

Writes ``docs/images/edits.jpg``. Needs ``psal[edit]``.
"""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

import psal
from psal.data.samples import samples

OUT = Path(__file__).parents[1] / "images" / "edits.jpg"
SIDE, MARGIN, LABEL = 340, 8, 30
INSET = 120
Pixels = NDArray[Any]


def main() -> None:
    """Edit the samples and write the sheet."""
    by_edit = {sample.edit: sample for sample in samples()}
    inpaint, colorize, reconstruct, upscale = (
        by_edit[name] for name in ("inpaint", "colorize", "reconstruct", "upscale")
    )
    assert inpaint.partner is not None
    assert colorize.partner is not None
    assert reconstruct.partner is not None
    hole = inpaint.picture.copy()
    hole[inpaint.partner > 127] = 255
    filled = psal.inpaint(inpaint.picture, inpaint.partner, seed=0)
    colored = psal.colorize(colorize.picture, colorize.partner, seed=0)
    rebuilt, shifts = psal.reconstruct(reconstruct.picture, reconstruct.partner, seed=0, return_shifts=True)
    large = psal.upscale(upscale.picture, 2, seed=0)
    columns = [
        ("inpaint", square(hole), square(filled)),
        ("colorize", inset(square(colorize.picture), colorize.partner), square(colored)),
        (
            "reconstruct",
            inset(square(reconstruct.picture), reconstruct.partner),
            inset(square(rebuilt), shifts),
        ),
        ("upscale", eye(upscale.picture, Image.Resampling.NEAREST), eye(large, Image.Resampling.LANCZOS)),
    ]
    step = SIDE + MARGIN
    sheet = Image.new("RGB", (4 * step - MARGIN, LABEL + 2 * step - MARGIN), "white")
    draw = ImageDraw.Draw(sheet)
    font = ImageFont.load_default(size=20)
    for column, (name, before, after) in enumerate(columns):
        draw.text((column * step + SIDE // 2, LABEL // 2 - 2), name, fill="#263238", font=font, anchor="mm")
        sheet.paste(before, (column * step, LABEL))
        sheet.paste(after, (column * step, LABEL + step))
    sheet.save(OUT, quality=88)


def square(pixels: Pixels) -> Image.Image:
    """The largest centered square of a picture, resized."""
    height, width = pixels.shape[:2]
    side = min(height, width)
    left, top = (width - side) // 2, (height - side) // 2
    part = Image.fromarray(pixels[top : top + side, left : left + side]).convert("RGB")
    return part.resize((SIDE, SIDE), Image.Resampling.LANCZOS)


def inset(picture: Image.Image, small: Pixels) -> Image.Image:
    """A second picture in the corner."""
    other = Image.fromarray(small).convert("RGB")
    other.thumbnail((INSET, INSET), Image.Resampling.LANCZOS)
    framed = Image.new("RGB", (other.width + 6, other.height + 6), "white")
    framed.paste(other, (3, 3))
    picture.paste(framed, (SIDE - framed.width, SIDE - framed.height))
    return picture


def eye(pixels: Pixels, resampling: Image.Resampling) -> Image.Image:
    """A quarter of the picture's width, around the cat's eye."""
    side = pixels.shape[0]
    left, top, part = round(0.16 * side), round(0.14 * side), round(0.34 * side)
    return Image.fromarray(np.ascontiguousarray(pixels[top : top + part, left : left + part])).resize(
        (SIDE, SIDE), resampling
    )


if __name__ == "__main__":
    main()
