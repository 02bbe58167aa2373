"""Search for the patches most similar to those that touch the hole."""

from dataclasses import replace

import torch
from torch import Tensor

from psal.editing.hole_filling.hole_geometry import PATCH_SIZE
from psal.editing.hole_filling.level_fill import LevelFill
from psal.functional import patch_match
from psal.matches import Matches
from psal.sums import window_sum

SWEEPS = 2  # propagation passes of one search
CANDIDATE_RADII = 16, 8  # pixels; random candidates lie within these distances of the current match


def search(fill: LevelFill, weight: Tensor, queries: Tensor, candidates: Tensor, seed: int) -> LevelFill:
    """Find the key with the smallest weighted squared distance to each query.

    Args:
        fill: state of the level.
        weight: ``[h, w]``, weight of each pixel in the distance.
        queries: bool ``[h, w]``, which queries to match; the others keep their match.
        candidates: int64 ``[m, h, w]``, matches to start from; −1 for none.
        seed: of the search.

    Returns:
        The state with the new matches and their distances.
    """
    query = weighted_query(fill, weight)
    found = patch_match(
        query[None], fill.keys[None], patch_size=PATCH_SIZE, neighbors=1, similarity="dot", iterations=SWEEPS,
        init=Matches(candidates[None], torch.zeros(1).expand_as(candidates[None])),  # the scores are not used
        key_mask=fill.valid_keys[None, None], query_mask=queries[None, None], seed=seed,
    )  # fmt: skip
    weight = weight * fill.atlas.inside
    squares = weight * fill.channels.square().sum(0)
    square, total = window_sum(torch.stack([squares, weight]), PATCH_SIZE, "replicate")
    distance = ((square - found.score[0, 0]) / total.clamp_min(1e-6)).clamp_min(0)
    return replace(
        fill,
        index=found.index[0, 0].where(queries, fill.index),
        distance=distance.where(queries, fill.distance),
    )


def weighted_query(fill: LevelFill, weight: Tensor) -> Tensor:
    """Map ``[C + 1, h, w]`` whose patches have the largest dot product with the most similar keys.

    Σ w (q − k)² is, up to a term that is equal for all keys, minus the dot product (2wq, −w) · (k, k²).

    Args:
        fill: state of the level.
        weight: ``[h, w]``, weight w of each pixel in the distance.
    """
    weight = weight * fill.atlas.inside
    return torch.cat([2 * weight * fill.channels, -weight[None]])


def random_candidates(fill: LevelFill, seed: int) -> Tensor:
    """Current match of each query and random keys around it, int64 ``[m, h, w]``."""
    generator = torch.Generator().manual_seed(seed)
    query = torch.nonzero(fill.queries.flatten())[:, 0]
    match = fill.index.flatten()[query]
    y, x = match // fill.key_width, match % fill.key_width
    candidates = fill.index.repeat(1 + len(CANDIDATE_RADII), 1, 1)
    for slot, radius in enumerate(CANDIDATE_RADII, 1):
        dy, dx = torch.randint(-radius, radius + 1, (2, len(match)), generator=generator)
        candidates[slot].view(-1)[query] = fill.key_index(y + dy, x + dx).where(match >= 0, -1)
    return candidates
