"""Start of a pyramid level from the matches of the coarser one."""

import torch
from torch import Tensor

from psal.editing.hole_filling.hole_geometry import bounding_box
from psal.editing.hole_filling.level_fill import LevelFill, Region, start_level
from psal.editing.hole_filling.masked_pyramid import Level
from psal.editing.hole_filling.onion_peeling import peel_onion
from psal.editing.hole_filling.patch_voting import vote

MIN_KEYS = 64  # valid keys that make a region, or a coarse level, worth searching
REGION_MARGIN = 48  # pixels around all matches that finer matches may move to


def upsample_shifts(coarse: LevelFill, level: Level, seed: int) -> LevelFill:
    """Start a level with the coarser level's shifts, doubled, and fill the hole by them.

    Parts of the hole that are too thin for the coarser level have no match there: they are filled by onion peeling.

    Args:
        coarse: final state of the coarser level.
        level: the next finer level.
        seed: of the onion peeling.
    """
    fill = start_level(level, _region_to_search(coarse, level))
    if fill.valid_keys.sum() < MIN_KEYS:  # coarse keys count as known when half of their pixels are
        fill = start_level(level)

    y, x = fill.atlas.y[fill.queries] + fill.region.top, fill.atlas.x[fill.queries] + fill.region.left  # of the level
    parent = _atlas_index(coarse, y // 2, x // 2)
    match = coarse.index.flatten()[parent]
    source_y = 2 * (match // coarse.key_width + coarse.region.top) + y % 2
    source_x = 2 * (match % coarse.key_width + coarse.region.left) + x % 2
    index = fill.key_index(source_y - fill.region.top, source_x - fill.region.left)
    fill.index[fill.queries] = index.where(parent >= 0, -1)
    fill.distance[fill.queries] = coarse.distance.flatten()[parent]
    return peel_onion(vote(fill, fill.hole), seed)


def _atlas_index(fill: LevelFill, y: Tensor, x: Tensor) -> Tensor:
    """Flat atlas positions of the matched queries at positions of the level; −1 where there is none."""
    matched = fill.queries & (fill.index >= 0)
    in_atlas = torch.full(fill.valid_keys.shape, -1)  # [H, W]
    in_atlas[fill.atlas.y[matched], fill.atlas.x[matched]] = torch.nonzero(matched.flatten())[:, 0]
    height, width = in_atlas.shape
    return in_atlas[(y - fill.region.top).clamp(0, height - 1), (x - fill.region.left).clamp(0, width - 1)]


def _region_to_search(coarse: LevelFill, level: Level) -> Region:
    """Part of a level that contains its hole, and the coarser level's queries and matches with a margin."""
    matched = coarse.queries & (coarse.index >= 0)
    match = coarse.index[matched]
    limits = []
    for size, hole, origin, query, source in zip(
        level.known.shape,
        bounding_box(~level.known),
        (coarse.region.top, coarse.region.left),
        (coarse.atlas.y, coarse.atlas.x),
        (match // coarse.key_width, match % coarse.key_width),
        strict=True,
    ):
        used = 2 * (torch.cat([query[matched], source]) + origin)
        start = max(0, min(int(used.min()), hole.start) - REGION_MARGIN)
        limits.append((start, min(size, max(int(used.max()), hole.stop) + REGION_MARGIN)))
    (top, bottom), (left, right) = limits
    return Region(top, left, bottom, right)
