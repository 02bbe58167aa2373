"""Fill a hole from the coarsest level of a pyramid to the finest, alternating search and vote."""

import math
from dataclasses import replace
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from psal.editing.hole_filling.fill_energy import energy
from psal.editing.hole_filling.fill_request import FillRequest
from psal.editing.hole_filling.guide import Guide
from psal.editing.hole_filling.hole_geometry import (
    PATCH_SIZE,
    bounding_box,
    hole_depth,
    patches_touching,
    valid_keys,
)
from psal.editing.hole_filling.level_fill import LevelFill, start_level
from psal.editing.hole_filling.masked_pyramid import Level, build_pyramid
from psal.editing.hole_filling.onion_peeling import peel_onion
from psal.editing.hole_filling.patch_search import random_candidates, search
from psal.editing.hole_filling.patch_voting import best_sources, vote
from psal.editing.hole_filling.poisson_blending import blend_sources
from psal.editing.hole_filling.shift_upsampling import MIN_KEYS, upsample_shifts
from psal.io.pictures import to_float
from psal.seeds import add_to_seed
from psal.sums import mean

MAX_TURNS_COARSEST, MAX_TURNS, MAX_TURNS_FINEST = 12, 6, 2  # of search and vote, per level
MIN_CHANGE = 0.002  # mean absolute change of the hole's weighted features in one turn, below which a level ends
MATCH_DECAY = 2.5  # a pixel loses this factor of its weight in matching per pixel of depth
MIN_MATCH_WEIGHT = 0.02  # keeps deep pixels from underflow
SEEDS_PER_LEVEL = 1000  # distance between the seeds of two levels
STRIP_ROWS = 128  # searched at a time for a patch that may be copied
UPSAMPLING_SEED = 500  # within a level; beyond the seeds of its turns


class Filled(NamedTuple):
    """A filled hole."""

    color: Tensor  # float32 [C, N], 0..1
    target: Tensor  # int64 [N], flat positions of the hole's pixels, ascending
    source: Tensor  # int64 [N], flat position of the known pixel that each was copied from, before blending
    energy: float = 0.0  # mean distance between the patches that touch the hole and their matches


@torch.inference_mode()
def fill_hole(request: FillRequest) -> Filled:
    """Fill a hole with patches of the rest of the image; at least one patch of pixels may be copied."""
    hole, seed = request.hole, request.seed
    pyramid = _searchable_levels(build_pyramid(request.color, hole, _count_levels(hole), request.sources))
    leader = None
    if request.guide is not None:
        leader = Guide(request.guide.where(hole, to_float(request.color)), len(pyramid))
    finest = pyramid[0]
    fill = start_level(pyramid.pop())
    coarsest = len(pyramid)
    if request.avoid is not None:
        fill = _avoid(fill, request.avoid, coarsest)
    fill = leader.start(fill, coarsest, seed) if leader else peel_onion(fill, seed)
    for level in range(coarsest, -1, -1):
        level_seed = add_to_seed(seed, SEEDS_PER_LEVEL * (level + 1))
        if level < coarsest:
            fill = upsample_shifts(fill, pyramid.pop(), add_to_seed(level_seed, UPSAMPLING_SEED))
        turns = MAX_TURNS_COARSEST if level == coarsest else MAX_TURNS if level else MAX_TURNS_FINEST
        for turn in range(turns):
            query = leader.lead(fill, level) if leader else fill
            fill = _search(fill, query.channels, add_to_seed(level_seed, turn))
            request.report(0.9 * 4.0**-level * (1 + 3 * (turn + 1) / turns) / 4)
            if turn == turns - 1:  # only the matches are used after it
                break
            before, fill = fill.channels, vote(fill, fill.hole)
            if mean((fill.channels - before)[:, fill.hole].abs()) < MIN_CHANGE:
                break
    atlas, to_fill, source, region, found = fill.atlas, fill.hole, best_sources(fill), fill.region, energy(fill)
    del fill, query  # the largest maps
    image = finest.known_color(*region.slices)
    color = blend_sources(image, finest.sources[region.slices], atlas, to_fill, source)
    request.report(1.0)
    target = torch.stack([atlas.y[to_fill], atlas.x[to_fill]])
    target, source = ((y + region.top) * hole.shape[1] + x + region.left for y, x in (target, source))
    order = target.argsort()
    return Filled(color[:, order], target[order], source[order], found)


def _avoid(fill: LevelFill, avoid: Tensor, level: int) -> LevelFill:
    """Remove the keys whose patches touch pixels to avoid, if enough others are left.

    Args:
        fill: a level.
        avoid: bool ``[H, W]``, of the finest level.
        level: number of the level.
    """
    coarse = F.max_pool2d(avoid[None].float(), 2**level, ceil_mode=True)[0] > 0
    left = fill.valid_keys & ~patches_touching(coarse)
    return replace(fill, valid_keys=left) if left.sum() >= MIN_KEYS else fill


def has_valid_key(sources: Tensor) -> bool:
    """Whether pixels that may be copied, bool ``[H, W]``, have room for a patch."""
    for top in range(0, len(sources), STRIP_ROWS):  # mostly the first strip has one
        strip = sources[max(0, top - PATCH_SIZE + 1) : top + STRIP_ROWS]
        if valid_keys(patches_touching(~strip)).any():
            return True
    return False


def _search(fill: LevelFill, query: Tensor, seed: int) -> LevelFill:
    """Search for given channels, from the current matches and random keys around them."""
    # The last bits of torch's pow depend on where a thread's share ends; those of exp do not.
    weight = torch.exp(-math.log(MATCH_DECAY) * fill.depth).clamp_min(MIN_MATCH_WEIGHT)
    found = search(replace(fill, channels=query), weight, fill.queries, random_candidates(fill, seed), seed)
    return replace(found, channels=fill.channels)


def _count_levels(hole: Tensor) -> int:
    """Number of levels after which a patch reaches across the hole."""
    rows, columns = (slice(max(0, side.start - 1), side.stop + 1) for side in bounding_box(hole))
    depth = int(hole_depth(hole[rows, columns]).max())
    return 1 + max(0, math.floor(math.log2(2 * depth / PATCH_SIZE)))


def _searchable_levels(pyramid: list[Level]) -> list[Level]:
    """Levels before the first one with too few valid keys: holes swallow narrow known parts as the image shrinks."""
    for count, level in enumerate(pyramid[1:], 1):
        if valid_keys(patches_touching(~level.sources)).sum() < MIN_KEYS:
            return pyramid[:count]
    return pyramid
