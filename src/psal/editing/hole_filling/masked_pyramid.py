"""Pyramid of an image with a hole, in which unknown pixels never bleed into known ones."""

from typing import NamedTuple

import torch
from torch import Tensor

from psal.editing.resizing import halve
from psal.io.pictures import to_float
from psal.sums import window_sum

CHROMA_WEIGHT = 2.5  # of differences in hue and saturation relative to those in brightness
TEXTURE_WEIGHT = 5.66  # of the texture channels relative to brightness
TEXTURE_WINDOW = 5  # pixels of each level, so the window grows with the level
STRIP_ROWS = 256  # rows halved at a time, which bounds the memory of large images
MIN_KNOWN_FRACTION = 0.5  # of the pixels that a coarse pixel covers, for it to be known


class Level(NamedTuple):
    """One size of the image. Values in the hole are meaningless."""

    color: (
        Tensor  # [C, H, W]; the finest level keeps the opened type (uint8, uint16 or float), which saves a float copy
    )
    roughness: Tensor | None  # [2, H, W]; None at the finest level, where it is computed when needed
    known: Tensor  # bool [H, W]
    sources: Tensor  # bool [H, W], known pixels that may be copied; the same tensor as ``known`` if all may

    @property
    def feature_count(self) -> int:
        return len(self.color) + 2

    def features(self, rows: slice, columns: slice, out: Tensor | None = None) -> Tensor:
        """Weighted color and local texture strength of a region, ``[C + 2, h, w]``: what patches are compared by.

        Texture separates a rough surface from a smooth one of the same mean color, and horizontal stripes from vertical
        ones.

        Args:
            rows, columns: of the region.
            out: where to write them, which saves a copy of large maps.
        """
        known = self.known[rows, columns]
        out = self.color.new_empty(self.feature_count, *known.shape, dtype=torch.float32) if out is None else out
        color = out[:-2].copy_(self.known_color(rows, columns))
        rough = roughness(color, known) if self.roughness is None else self.roughness[:, rows, columns]
        weigh_chroma_(color)
        weight = known[None].float()
        texture = window_sum(rough * weight, TEXTURE_WINDOW)
        del rough
        torch.mul(texture.div_(window_sum(weight, TEXTURE_WINDOW).clamp_min_(1)), TEXTURE_WEIGHT, out=out[-2:])
        return out

    def known_color(self, rows: slice, columns: slice) -> Tensor:
        """Color of a region in 0..1, ``[C, h, w]``, a copy; 0 in the hole."""
        return to_float(self.color[:, rows, columns]).mul_(self.known[rows, columns])


def build_pyramid(color: Tensor, hole: Tensor, levels: int, sources: Tensor | None = None) -> list[Level]:
    """Halve an image repeatedly.

    Args:
        color: ``[C, H, W]``, uint8, uint16 or floats in 0..1.
        hole: bool ``[H, W]``.
        levels: how many sizes.
        sources: bool ``[H, W]``, pixels that may be copied; None for all known ones.

    Returns:
        The levels, finest first.
    """
    known = ~hole
    pyramid = [Level(color, None, known, known if sources is None else known & sources)]
    while len(pyramid) < levels:
        pyramid.append(_halve_level(pyramid[-1]))
    return pyramid


def weigh_chroma_(color: Tensor) -> Tensor:
    """Multiply the deviations of colors ``[C, h, w]`` from their gray by ``CHROMA_WEIGHT``, in place.

    A patch of another hue stands out more than one of another brightness, and shadows change the brightness alone.
    """
    if len(color) > 1:
        gray = color.mean(0)
        color.sub_(gray).mul_(CHROMA_WEIGHT).add_(gray)
    return color


def roughness(color: Tensor, known: Tensor) -> Tensor:
    """|dx| and |dy| of the mean color, ``[2, H, W]``; differences with unknown pixels count as 0."""
    gray = color.mean(0)
    rough = torch.zeros(2, *gray.shape)
    rough[0, :, :-1] = gray.diff(dim=1).abs_().mul_(known[:, 1:] & known[:, :-1])
    rough[1, :-1] = gray.diff(dim=0).abs_().mul_(known[1:] & known[:-1])
    return rough


def _halve_level(level: Level) -> Level:
    """Mean of the known pixels of each 2 × 2 block."""
    height = level.known.shape[0]
    strips = [_halve_strip(level, slice(top, min(top + STRIP_ROWS, height))) for top in range(0, height, STRIP_ROWS)]
    color, rough, known = (torch.cat(parts, -2) for parts in zip(*strips, strict=True))
    sources = known if level.sources is level.known else halve_mask(level.sources)
    return Level(color, rough, known, sources)


def halve_mask(mask: Tensor) -> Tensor:
    """Halve a mask ``[H, W]``: True where at least half of the pixels are."""
    return halve(mask[None].float())[0] >= MIN_KNOWN_FRACTION


def _halve_strip(level: Level, rows: slice) -> tuple[Tensor, Tensor, Tensor]:
    known = level.known[rows]
    if level.roughness is None:
        one_more = slice(rows.start, rows.stop + 1)  # the last row's |dy| needs the row below
        color = to_float(level.color[:, one_more])
        rough = roughness(color, level.known[one_more])[:, : len(known)]
        color = color[:, : len(known)]
    else:
        color = level.color[:, rows]
        rough = level.roughness[:, rows]
    weight = known[None].float()
    fraction = halve(weight)
    scale = 1 / fraction.clamp_min(0.25)  # 0 only in blocks without known pixels
    return halve(color * weight) * scale, halve(rough * weight) * scale, fraction[0] >= MIN_KNOWN_FRACTION
