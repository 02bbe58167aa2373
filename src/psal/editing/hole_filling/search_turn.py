"""One turn of search and vote."""

from dataclasses import replace

from torch import Tensor

from psal.editing.hole_filling.level_fill import LevelFill
from psal.editing.hole_filling.patch_search import random_candidates, search
from psal.editing.hole_filling.patch_voting import vote

MAX_TURNS_COARSEST, MAX_TURNS, MAX_TURNS_FINEST = 6, 4, 2  # per level
MIN_CHANGE = 0.002  # mean absolute change of the hole's features (0..1) in one turn, below which a level ends
MATCH_DECAY = 1.6  # a pixel loses this factor of its weight in matching per pixel of depth
MIN_MATCH_WEIGHT = 0.02  # keeps deep pixels from underflow


def search_and_vote(fill: LevelFill, query: Tensor, seed: int) -> tuple[LevelFill, float]:
    """Search for the patches of some channels, then vote.

    Args:
        fill: state of the level.
        query: ``[C, h, w]``, the channels to search for.
        seed: of the search.

    Returns:
        the new state, and the mean absolute change of the hole's channels.
    """
    weight = (MATCH_DECAY**-fill.depth).clamp_min(MIN_MATCH_WEIGHT)
    found = search(replace(fill, channels=query), weight, fill.queries, random_candidates(fill, seed), seed)
    voted = vote(replace(found, channels=fill.channels), fill.hole)
    return voted, (voted.channels - fill.channels)[:, fill.hole].abs().mean().item()
