"""Fill a hole from the coarsest level of a pyramid to the finest, alternating search and vote."""

import math

from torch import Tensor

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
from psal.progress import Progress
from psal.seeds import add_to_seed

MAX_TURNS_COARSEST, MAX_TURNS, MAX_TURNS_FINEST = 6, 4, 2  # of search and vote, per level
MIN_CHANGE = 0.002  # mean absolute change of the hole's features (0..1) in one turn, below which a level ends
MATCH_DECAY = 1.6  # a pixel loses this factor of its weight in matching per pixel of depth
MIN_MATCH_WEIGHT = 0.02  # keeps deep pixels from underflow
SEEDS_PER_LEVEL = 1000  # distance between the seeds of two levels
UPSAMPLING_SEED = 500  # within a level; beyond the seeds of its turns


def fill_hole(color: Tensor, hole: Tensor, *, seed: int, progress: Progress | None = None) -> Tensor:
    """Fill a hole with patches of the rest of the image.

    Args:
        color: ``[C, H, W]``, 0..1. Values in the hole are ignored.
        hole: bool ``[H, W]``, not empty; leaves at least one patch of known pixels.
        seed: of the search.
        progress: called with the fraction of the work that is done, 0..1.

    Returns:
        ``[C, H, W]``, unchanged outside the hole.
    """
    filled = color.clone()
    filled[:, hole] = 0
    pyramid = _searchable_levels(build_pyramid(filled, hole, _count_levels(hole)))
    fill = peel_onion(start_level(pyramid.pop()), seed)
    coarsest = len(pyramid)
    for number in range(coarsest, -1, -1):
        level_seed = add_to_seed(seed, SEEDS_PER_LEVEL * (number + 1))
        if number < coarsest:
            fill = upsample_shifts(fill, pyramid.pop(), add_to_seed(level_seed, UPSAMPLING_SEED))
        turns = MAX_TURNS_COARSEST if number == coarsest else MAX_TURNS if number else MAX_TURNS_FINEST
        for turn in range(turns):
            fill, change = _search_and_vote(fill, add_to_seed(level_seed, turn))
            if progress:
                progress(0.9 * 4.0**-number * (1 + 3 * (turn + 1) / turns) / 4)
            if change < MIN_CHANGE:
                break
    region = fill.region.slices
    target = fill.atlas.y[fill.hole], fill.atlas.x[fill.hole]
    image = filled[:, *region]  # a view
    image[:, *target] = blend_sources(image, ~hole[region], fill.atlas, fill.hole, best_sources(fill))
    if progress:
        progress(1.0)
    return filled


def has_valid_key(hole: Tensor) -> bool:
    """Whether a hole leaves at least one patch of known pixels."""
    return bool(valid_keys(patches_touching(hole)).any())


def _search_and_vote(fill: LevelFill, seed: int) -> tuple[LevelFill, float]:
    """One turn; also returns the mean absolute change of the hole's channels."""
    weight = (MATCH_DECAY**-fill.depth).clamp_min(MIN_MATCH_WEIGHT)
    voted = vote(search(fill, weight, fill.queries, random_candidates(fill, seed), seed), fill.hole)
    return voted, (voted.channels - fill.channels)[:, fill.hole].abs().mean().item()


def _count_levels(hole: Tensor) -> int:
    """Number of levels after which a patch reaches across the hole."""
    rows, columns = (slice(max(0, side.start - 1), side.stop + 1) for side in bounding_box(hole))
    depth = int(hole_depth(hole[rows, columns]).max())
    return 1 + max(0, math.floor(math.log2(2 * depth / PATCH_SIZE)))


def _searchable_levels(pyramid: list[Level]) -> list[Level]:
    """Levels before the first one with too few valid keys: holes swallow narrow known parts as the image shrinks."""
    for number, level in enumerate(pyramid[1:], 1):
        if valid_keys(patches_touching(~level.known)).sum() < MIN_KEYS:
            return pyramid[:number]
    return pyramid
