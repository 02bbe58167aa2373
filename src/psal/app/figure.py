"""The picture of one pixel's attention: marks on both pictures, and lines between them."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image, ImageDraw
from torch import Tensor

if TYPE_CHECKING:
    from psal.app.inside import Place

QUERY_COLOR = "#D55E00"  # color-blind safe (Okabe and Ito)
KEY_COLOR = "#56B4E9"
SCALE = 2  # pictures are drawn larger than they are, so that marks don't hide pixels
GAP = 16
SMALLEST, LARGEST = 4.0, 16.0  # radius of a mark without and with all the weight
LINES = 20  # more of them would hide the pictures


def image_of(picture: Tensor) -> Image.Image:
    """``[3, H, W]``, 0..1, as a Pillow image."""
    return Image.fromarray((picture * 255).round().byte().movedim(0, 2).contiguous().numpy())


def draw(photo: Path, reference: Path, pixel: tuple[int, int], places: "list[Place]") -> dict[str, Image.Image]:
    """Draw the query and the places that it attends to.

    Args:
        photo, reference: the two pictures.
        pixel: (row, column) of the query.
        places: the heaviest first.

    Returns:
        ``query`` and ``key``, each picture with its marks at its own size, and ``figure``, both enlarged side by side
        with lines.
    """
    with Image.open(photo) as image:
        query = image.convert("RGB")
    with Image.open(reference) as image:
        key = image.convert("RGB")
    sheet = Image.new("RGB", (SCALE * (query.width + key.width) + GAP, SCALE * max(query.height, key.height)), "white")
    left = SCALE * query.width + GAP
    sheet.paste(_enlarged(query), (0, 0))
    sheet.paste(_enlarged(key), (left, 0))
    at = _center(pixel, SCALE)
    lines = ImageDraw.Draw(sheet)
    for place in reversed(places[:LINES]):
        x, y = _center((place.row, place.column), SCALE)
        lines.line([at, (x + left, y)], fill=KEY_COLOR, width=1 + round(3 * place.weight))
    _mark_places(sheet, places, SCALE, left)
    _mark(sheet, at, 8.0, QUERY_COLOR)
    _mark(query, _center(pixel, 1), 6.0, QUERY_COLOR)
    _mark_places(key, places, 1, 0)
    return {"query": query, "key": key, "figure": sheet}


def _mark_places(image: Image.Image, places: "list[Place]", scale: int, left: int) -> None:
    for place in reversed(places):  # the heaviest last, on top of the others
        x, y = _center((place.row, place.column), scale)
        radius = scale / 2 * (SMALLEST + (LARGEST - SMALLEST) * float(np.sqrt(place.weight)))
        _mark(image, (x + left, y), radius, KEY_COLOR)


def _mark(image: Image.Image, center: tuple[float, float], radius: float, color: str) -> None:
    """A ring between a white and a black one, to be seen on any ground."""
    pen = ImageDraw.Draw(image)
    x, y = center
    for grown, fill, width in ((2.5, "black", 5), (1.5, "white", 4), (0.5, color, 2)):
        reach = radius + grown
        pen.ellipse((x - reach, y - reach, x + reach, y + reach), outline=fill, width=width)


def _center(pixel: tuple[int, int], scale: int) -> tuple[float, float]:
    """x and y of a pixel's middle."""
    return (pixel[1] + 0.5) * scale, (pixel[0] + 0.5) * scale


def _enlarged(image: Image.Image) -> Image.Image:
    return image.resize((SCALE * image.width, SCALE * image.height), Image.Resampling.NEAREST)
