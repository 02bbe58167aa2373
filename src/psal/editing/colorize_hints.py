"""Colored strokes on a gray picture, spread to what looks alike nearby.

After Levin, Lischinski and Weiss, "Colorization using Optimization" (2004): what the strokes add to the chroma is
spread so that neighbors of similar luminance get similar values, and vanishes far from all strokes. Solved by conjugate
gradients, from coarse to fine.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from psal.editing.guided_upsampling import upsample_guided
from psal.editing.resizing import halve
from psal.io.pictures import ImageLike, Picture, open_picture
from psal.luminance import chroma
from psal.sums import total

MIN_DIFFERENCE = 0.06  # of a channel, 0..1: smaller ones are taken for the losses of a JPEG, not for a stroke
MAX_PIXELS = 2**18  # that are solved for: what is added is smooth, but for the edges of the picture
MIN_SIDE = 16  # of the coarsest level
ITERATIONS = 40  # per level
RANGE = 0.2  # of the longer side, the distance at which strokes fade where nothing stops them
MIN_VARIANCE = 1e-4  # of luminance: differences within noise do not stop a color
STROKE_WEIGHT = 100.0  # of a pixel of a stroke, against 1 for two neighbors that look alike


class Strokes(NamedTuple):
    """Strokes at the size of the picture."""

    chroma: Tensor  # [2, H, W]
    weight: Tensor  # [1, H, W], 1 on strokes, 0 elsewhere


def open_strokes(hints: ImageLike, picture: Picture) -> Strokes:
    """Find the strokes of a picture with hints.

    Args:
        hints: the picture with strokes painted over it, or strokes on a transparent layer; of any kind.
        picture: the picture without them.

    Raises:
        ValueError, TypeError: if the sizes differ or there are no strokes.
    """
    layer = open_picture(hints, "hints")
    (height, width), own = layer.color.shape[1:], picture.color.shape[1:]
    if (height, width) != tuple(own):
        raise ValueError(f"hints must have the size of the picture, {own[1]} × {own[0]} pixels, got {width} × {height}")
    if len(layer.color) == 1:
        raise ValueError("hints must be a color picture, got a gray one")
    if layer.alpha is not None and layer.alpha.min() < 0.5:
        weight = (layer.alpha >= 0.5).float()
    else:
        weight = ((layer.color - picture.color).abs().amax(0, keepdim=True) > MIN_DIFFERENCE).float()
    if not weight.any():
        raise ValueError("hints have no strokes: paint over the picture, or on a transparent layer, in color")
    return Strokes(chroma(layer.color), weight)


def follow_hints(found: Tensor, luma: Tensor, strokes: Strokes) -> Tensor:
    """Change chroma so that it has the strokes' colors on them and on what looks alike nearby.

    Args:
        found: chroma ``[2, H, W]``.
        luma: ``[1, H, W]``, 0..1.
        strokes: on the same device.

    Returns:
        ``[2, H, W]``
    """
    small, weight, wanted = luma, strokes.weight, (strokes.chroma - found) * strokes.weight
    while small.numel() > MAX_PIXELS:
        small, weight, wanted = halve(small), halve(weight), halve(wanted)
    return found + upsample_guided(_spread(small, weight, wanted), small, luma)


def _spread(luma: Tensor, weight: Tensor, wanted: Tensor) -> Tensor:
    """Spread values, given times their weight, over a picture; ``[2, h, w]``."""
    if min(luma.shape[1:]) < 2 * MIN_SIDE:
        start = torch.zeros_like(wanted)
    else:
        coarse = _spread(halve(luma), halve(weight), halve(wanted))
        start = coarse.repeat_interleave(2, 1).repeat_interleave(2, 2)[:, : luma.shape[1], : luma.shape[2]]
    links = [_link(luma, axis) for axis in (1, 2)]
    own = STROKE_WEIGHT * weight + 1 / (RANGE * max(luma.shape[1:])) ** 2
    return _solve(links, own, STROKE_WEIGHT * wanted, start)


def _link(luma: Tensor, axis: int) -> Tensor:
    """How much alike two neighbors along an axis look, 0..1; one less than pixels along the axis."""
    mean, square = (torch.nn.functional.avg_pool2d(x, 5, 1, 2, count_include_pad=False) for x in (luma, luma * luma))
    variance = (square - mean * mean).clamp_min(0) + MIN_VARIANCE
    length = luma.shape[axis] - 1
    nearby = (variance.narrow(axis, 0, length) + variance.narrow(axis, 1, length)) / 2
    return torch.exp(-2 * luma.diff(dim=axis).square() / nearby).clamp_min(1e-4)


def _solve(links: list[Tensor], own: Tensor, right: Tensor, x: Tensor) -> Tensor:
    """Conjugate gradients with the diagonal as preconditioner, for both channels at once."""

    def apply(x: Tensor) -> Tensor:
        out = own * x
        for axis, link in zip((1, 2), links, strict=True):
            flow = link * x.diff(dim=axis)
            length = x.shape[axis] - 1
            out.narrow(axis, 0, length).sub_(flow)
            out.narrow(axis, 1, length).add_(flow)
        return out

    diagonal = own.clone()
    for axis, link in zip((1, 2), links, strict=True):
        diagonal.narrow(axis, 0, link.shape[axis]).add_(link)
        diagonal.narrow(axis, 1, link.shape[axis]).add_(link)
    residual = right - apply(x)
    scaled = residual / diagonal
    direction, power = scaled, total(residual * scaled)
    for _ in range(ITERATIONS):
        if float(power) < 1e-12:
            break
        changed = apply(direction)
        step = power / total(direction * changed)
        x, residual = x + step * direction, residual - step * changed
        scaled = residual / diagonal
        last, power = power, total(residual * scaled)
        direction = scaled + power / last * direction
    return x
