"""Random holes to train inpainting on."""

import math
from typing import NamedTuple

import numpy as np
import torch
from PIL import Image, ImageDraw
from scipy import ndimage
from torch import Tensor

from psal.data.draws import draw_below, draw_between

KINDS = ("rectangles", "free-form", "both")
MAX_STROKES, MAX_BENDS = 6, 5
STROKE_LENGTH, STROKE_WIDTH = (0.05, 0.25), (0.03, 0.1)  # of a straight piece, as shares of the picture's side
ENOUGH = 0.3  # share of the picture after which no further stroke is drawn


class Hole(NamedTuple):
    """A hole in a square picture, and a square window on it.

    Attributes:
        mask: bool ``(size, size)``, True in the hole.
        top: first row of the window.
        left: its first column.
    """

    mask: Tensor
    top: int
    left: int


def random_hole(kind: str, size: int, window: int, generator: torch.Generator) -> Hole:
    """Draw a hole.

    Args:
        kind: "rectangles", "free-form", or "both", which draws one or the other.
        size: side of the picture.
        window: side of the window, and the largest side of a rectangle.
        generator: where the random numbers come from.
    """
    if kind == "rectangles" or (kind == "both" and draw_between(0, 1, generator) < 0.5):
        return random_rectangle(size, window, generator)
    return random_strokes(size, window, generator)


def random_rectangle(size: int, window: int, generator: torch.Generator) -> Hole:
    """Draw a rectangle that fills a random window but for up to an eighth on each side, as Yu et al. 2018 do."""
    top, left = (draw_below(size - window + 1, generator) for _ in range(2))
    down, right = (draw_below(window // 8 + 1, generator) for _ in range(2))
    mask = torch.zeros(size, size, dtype=torch.bool)
    mask[top + down : top + window - down, left + right : left + window - right] = True
    return Hole(mask, top, left)


def random_strokes(size: int, window: int, generator: torch.Generator) -> Hole:
    """Draw strokes of a brush, each of several straight pieces; the window is around a random pixel of them."""
    canvas = Image.new("1", (size, size))
    pen = ImageDraw.Draw(canvas)
    for _ in range(1 + draw_below(MAX_STROKES, generator)):
        _draw_stroke(pen, size, generator)
        if np.asarray(canvas).mean() > ENOUGH:
            break
    mask = torch.from_numpy(np.array(canvas))
    row, column = mask.nonzero()[draw_below(int(mask.sum()), generator)].tolist()
    top, left = (min(max(at - window // 2, 0), size - window) for at in (row, column))
    return Hole(mask, top, left)


def _draw_stroke(pen: ImageDraw.ImageDraw, size: int, generator: torch.Generator) -> None:
    width = max(2, round(size * draw_between(*STROKE_WIDTH, generator)))
    x, y = (draw_between(0, size, generator) for _ in range(2))
    angle = draw_between(0, 2 * math.pi, generator)
    for _ in range(1 + draw_below(MAX_BENDS, generator)):
        angle += draw_between(-math.pi / 2, math.pi / 2, generator)
        length = size * draw_between(*STROKE_LENGTH, generator)
        to_x = min(max(x + length * math.cos(angle), 0), size - 1)
        to_y = min(max(y + length * math.sin(angle), 0), size - 1)
        pen.line((x, y, to_x, to_y), fill=1, width=width)
        for center_x, center_y in ((x, y), (to_x, to_y)):  # round ends and bends
            pen.circle((center_x, center_y), width / 2, fill=1)
        x, y = to_x, to_y


def depth_of(mask: Tensor) -> Tensor:
    """Return the chessboard distance ``(H, W)`` to the nearest known pixel: 0 outside the hole, 1 at its border.

    >>> depth_of(torch.tensor([[False, True, True, True, False]])).tolist()
    [[0.0, 1.0, 2.0, 1.0, 0.0]]
    """
    depth = ndimage.distance_transform_cdt(mask.numpy(), metric="chessboard")
    return torch.from_numpy(depth.astype(np.float32))
