"""Detail for an enlarged picture from similar patches of the picture itself.

After Glasner, Bagon and Irani, "Super-Resolution from a Single Image" (2009), and Freedman and Fattal, "Image and Video
Upscaling from Local Self-Examples" (2011). Structures recur in a picture at different sizes. The picture is shrunk and
enlarged again, so the detail that this removes is known. Each patch of the blurred enlargement is matched with patches
of the picture that were blurred in the same way, and receives the detail that those have lost.

Large pictures are processed in tiles, each with examples from the tile and its surroundings, so memory and the time per
pixel do not grow with the picture. Tiles overlap by a patch, so that every pixel gets the votes of all patches that
cover it.

Tuned constants, each varied alone: mean PSNR in dB of RGB at scale 2, five pictures of Urban100 and three of Set5. The
defaults gave 29.36 dB, with examples of four phases and five neighbors.

=============  =======  ===========================================
constant       default  others
=============  =======  ===========================================
PATCH_SIZE     5        3: 29.27; 7: 29.16
NOISE          0.02     0.005: 29.36; 0.01: 29.35; 0.04: 29.37
VOTE_VARIANCE  0.1      0.03: 29.27; 0.3: 29.36
NEIGHBORS      3        1: 29.19; 3: 29.32; 5: 29.36; 8: 29.37
=============  =======  ===========================================
"""

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor

from psal.editing.resizing import enlarge, resize
from psal.functional import aggregate, patch_match
from psal.luminance import BLUE, GREEN, RED
from psal.matches import Matches
from psal.progress import Progress
from psal.seeds import add_to_seed

PATCH_SIZE = 5  # pixels per side
# Matches per patch. Five take 20 % more time; luminance PSNR at scale 2: 31.49 dB, and 31.52 dB with five, for ten
# photographs of BSDS500's train split; 3.06 dB above bicubic with either on Urban100.
NEIGHBORS = 3
NOISE = 0.02  # differences of gray levels (0..1) below this say nothing about how well a patch fits
VOTE_VARIANCE = 0.1  # variance of the votes' Gaussian weights, in squared distances of the best match
# Two phases of the coarse grid. Luminance PSNR at scale 2, eight photographs of BSDS500's train split: four phases
# 29.849, these two 29.877, the first alone 29.822 dB; a third of the search's time goes into two more phases.
PHASES = ((0, 0), (1, 1))
TILE = 512  # pixels of the small map per side, at most
SURROUNDINGS = 32  # pixels of the small map around a tile that give examples, too


class Tile(NamedTuple):
    """A part of one side, of the small map and of the large one."""

    small: slice
    large: slice


def add_detail(small: Tensor, size: tuple[int, int], *, seed: int, progress: Progress | None = None) -> Tensor:
    """Enlarge by one step, with detail from similar patches of the small map.

    Query and keys are blurred in the same way, so the detail that a key has lost is what the query lacks.

    Args:
        small: ``(1, C, h, w)``, C is 1 or 3.
        size: (H, W) of the result, at most twice as large.
        seed: of the search.
        progress: called with the fraction of the work that is done, 0..1.

    Returns:
        ``(1, C, *size)``, not clamped.
    """
    query = enlarge(small, size)
    out = query.clone()
    tiles = [(row, column) for row in _tiles(small.shape[2], size[0]) for column in _tiles(small.shape[3], size[1])]
    for number, (row, column) in enumerate(tiles):
        rows, columns = _widened(row.large, PATCH_SIZE - 1), _widened(column.large, PATCH_SIZE - 1)
        near = small[:, :, _widened(row.small, SURROUNDINGS), _widened(column.small, SURROUNDINGS)]
        scale = size[0] / small.shape[2], size[1] / small.shape[3]
        detail = _find_detail(query[:, :, rows, columns], near, scale, add_to_seed(seed, number))
        out[:, :, row.large, column.large] += detail[:, :, _within(row.large, rows), _within(column.large, columns)]
        if progress:
            progress((number + 1) / len(tiles))
    return out


def _find_detail(query: Tensor, small: Tensor, scale: tuple[float, float], seed: int) -> Tensor:
    """Detail for an enlarged map ``(1, C, H, W)`` by the example of a small one, of the size of the enlarged one."""
    examples = _examples(small, scale)
    if not examples:
        return torch.zeros_like(query)
    key = torch.cat([enlarge(coarse, _size(sharp)) for sharp, coarse in examples], dim=2)  # one below the other
    lost = torch.cat([sharp for sharp, _ in examples], dim=2) - key
    neighbors = min(NEIGHBORS, key[0, 0].numel())
    found = patch_match(_perceptual(query), _perceptual(key), patch_size=PATCH_SIZE, neighbors=neighbors, seed=seed)
    distance = -found.score / PATCH_SIZE**2
    logits = -distance / (2 * (NOISE**2 + VOTE_VARIANCE * distance[:, :1]))
    return aggregate(Matches(found.index, logits), lost, patch_size=PATCH_SIZE)


def _tiles(small: int, large: int) -> Iterator[Tile]:
    """Divide a side into parts of about the same length, given its length in the small map and in the large one."""
    count = math.ceil(small / TILE)
    ends = [round(number * small / count) for number in range(count + 1)]
    for begin, end in pairwise(ends):
        yield Tile(slice(begin, end), slice(round(begin * large / small), round(end * large / small)))


def _widened(part: slice, margin: int) -> slice:
    return slice(max(part.start - margin, 0), part.stop + margin)


def _within(part: slice, whole: slice) -> slice:
    return slice(part.start - whole.start, part.stop - whole.start)


def _examples(small: Tensor, scale: tuple[float, float]) -> list[tuple[Tensor, Tensor]]:
    """Pairs of a crop of the map and the crop shrunk by the scale, for some phases of the coarse pixel grid.

    The position of an edge within a coarse pixel decides how shrinking blurs it, so a crop that starts one pixel
    further gives new examples. All pairs have the same sizes. The list is empty if the map is too small.
    """
    coarse = [math.floor((side - 1) / factor) for side, factor in zip(_size(small), scale, strict=True)]
    height, width = (round(side * factor) for side, factor in zip(coarse, scale, strict=True))
    if not min(coarse):
        return []
    crops = [small[..., y : y + height, x : x + width] for y, x in PHASES]
    return [(crop, resize(crop, (coarse[0], coarse[1]))) for crop in crops]


def _size(x: Tensor) -> tuple[int, int]:
    return x.shape[-2], x.shape[-1]


def _perceptual(color: Tensor) -> Tensor:
    """Scale the channels so that squared differences are weighted as in luminance."""
    return color if color.shape[1] == 1 else color * color.new_tensor([RED, GREEN, BLUE]).sqrt()[:, None, None]
