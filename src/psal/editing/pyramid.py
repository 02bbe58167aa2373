"""A picture with holes at several sizes: what is unknown never bleeds into what is known."""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from scipy import ndimage
from torch import Tensor

from psal.editing.resizing import halve

TEXTURE_WEIGHT = 4.0
TEXTURE_WINDOW = 5  # pixels of each level, so that the window grows with the level
STRIP = 256  # rows that are halved at a time


class Level(NamedTuple):
    """One size of the picture. What stands in the hole has no meaning."""

    color: Tensor  # [C, H, W]
    roughness: Tensor | None  # [1, H, W]; None at the finest level, where it is cheap to get
    known: Tensor  # [H, W], bool

    def features(self, rows: slice, columns: slice) -> Tensor:
        """Colours and texture of a part, ``[C + 1, h, w]``."""
        color, known = self.color[:, rows, columns], self.known[rows, columns]
        rough = roughness(color, known) if self.roughness is None else self.roughness[:, rows, columns]
        weight = known[None].float()
        mean, share = _window_sum(rough * weight), _window_sum(weight)
        return torch.cat([color, TEXTURE_WEIGHT * mean / share.clamp_min(1)])


def make_pyramid(color: Tensor, hole: Tensor, levels: int) -> list[Level]:
    """The picture halved again and again, finest first.

    Args:
        color: ``[C, H, W]``.
        hole: bool ``[H, W]``.
        levels: how many sizes.

    Returns:
        The levels; a pixel of a coarser one is known if at least half of what it covers is.
    """
    pyramid = [Level(color, None, ~hole)]
    while len(pyramid) < levels:
        pyramid.append(halve_level(pyramid[-1]))
    return pyramid


def halve_level(level: Level) -> Level:
    """Means of the known ones of 2 × 2 pixels; an odd last row or column is repeated."""
    height = level.known.shape[0]
    strips = [_halve_rows(level, slice(top, min(top + STRIP, height))) for top in range(0, height, STRIP)]
    return Level(*(torch.cat(parts, -2) for parts in zip(*strips, strict=True)))


def roughness(color: Tensor, known: Tensor) -> Tensor:
    """|dx| + |dy| of the mean colour, ``[1, H, W]``; 0 towards pixels that are not known."""
    grey = color.mean(0)
    across = (grey[:, 1:] - grey[:, :-1]).abs() * (known[:, 1:] & known[:, :-1])
    down = (grey[1:] - grey[:-1]).abs() * (known[1:] & known[:-1])
    return (F.pad(across, (0, 1)) + F.pad(down, (0, 0, 0, 1)))[None]


def _halve_rows(level: Level, rows: slice) -> tuple[Tensor, Tensor, Tensor]:
    color, known = level.color[:, rows], level.known[rows]
    if level.roughness is None:
        below = slice(rows.start, rows.stop + 1)  # the last row needs the one after it
        rough = roughness(level.color[:, below], level.known[below])[:, : len(known)]
    else:
        rough = level.roughness[:, rows]
    weight = known[None].float()
    share = halve(weight)
    scale = 1 / share.clamp_min(0.25)
    return halve(color * weight) * scale, halve(rough * weight) * scale, share[0] >= 0.5


def _window_sum(x: Tensor) -> Tensor:
    """Sum over the pixels around each, ``[1, H, W]``."""
    mean = ndimage.uniform_filter(x[0].numpy(), TEXTURE_WINDOW, mode="constant")
    return TEXTURE_WINDOW**2 * torch.from_numpy(mean)[None]
