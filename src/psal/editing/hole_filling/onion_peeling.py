"""First fill of a hole, ring by ring from its border inwards."""

import torch
import torch.nn.functional as F
from torch import Tensor

from psal.editing.hole_filling.hole_geometry import PATCH_RADIUS, PATCH_SIZE, hole_depth, patches_touching
from psal.editing.hole_filling.level_fill import LevelFill
from psal.editing.hole_filling.patch_search import search, weighted_query
from psal.editing.hole_filling.patch_voting import vote
from psal.seeds import add_to_seed

MIN_SAMPLED_KEYS = 64
MAX_SAMPLED_KEYS = 2048  # random keys that a ring is compared with
MAX_COMPARISONS = 2**23  # queries × sampled keys of one ring; fewer keys are sampled for long rings
QUERY_CHUNK = 128  # queries compared at a time: their products with all keys stay in the cache


def peel_onion(fill: LevelFill, seed: int) -> LevelFill:
    """Fill the part of the hole that no matched patch covers yet.

    Each ring compares only known pixels and those of the rings before it. Its queries start from the best of some
    random keys and from their neighbors' matches.
    """
    empty = fill.hole & ~patches_touching(fill.index >= 0)
    if not empty.any():
        return fill
    empty_in_region = torch.zeros_like(fill.valid_keys)
    empty_in_region[fill.atlas.y[empty], fill.atlas.x[empty]] = True
    depth = fill.atlas.gather(hole_depth(empty_in_region))
    touching = fill.atlas.gather(patches_touching(empty_in_region))
    for ring in range(1, int(depth.max()) + 1):
        ring_seed = add_to_seed(seed, ring)
        weight = (depth < ring).float()
        queries = fill.queries & touching & (depth <= ring)
        unmatched = queries & (fill.index < 0)
        sampled = torch.full_like(fill.index, -1)
        sampled[unmatched] = best_sampled_keys(fill, weight, unmatched, ring_seed)
        fill = search(fill, weight, queries, torch.stack([fill.index, sampled]), ring_seed)
        fill = vote(fill, empty & (depth <= ring))
    return fill


def best_sampled_keys(fill: LevelFill, weight: Tensor, queries: Tensor, seed: int) -> Tensor:
    """Most similar of a random sample of keys for each query, int64 ``[N]``."""
    keys = _sample_keys(fill, int(queries.sum()), seed)
    key_patches = _patches(fill.keys, keys).T  # [d, keys]
    query = weighted_query(fill, weight)
    best = [keys[:0]]
    for chunk in torch.split(torch.nonzero(queries.flatten())[:, 0], QUERY_CHUNK):
        best.append(keys[(_patches(query, chunk) @ key_patches).argmax(1)])
    return torch.cat(best)


def _sample_keys(fill: LevelFill, query_count: int, seed: int) -> Tensor:
    """Flat indices of random valid keys."""
    keys = torch.nonzero(fill.valid_keys.flatten())[:, 0]
    count = max(MIN_SAMPLED_KEYS, min(MAX_SAMPLED_KEYS, MAX_COMPARISONS // max(query_count, 1)))
    order = torch.randperm(len(keys), generator=torch.Generator().manual_seed(seed))
    return keys[order[:count]]


def _patches(x: Tensor, centers: Tensor) -> Tensor:
    """Patches of ``[C, H, W]`` around flat positions, ``[n, p² · C]``, channels last: a patch is p runs in memory."""
    padded = F.pad(x[None], (PATCH_RADIUS,) * 4, mode="replicate")[0].movedim(0, -1).contiguous()  # [H + 2r, W + 2r, C]
    width, channels = padded.shape[1:]
    runs = padded.view(-1).unfold(0, PATCH_SIZE * channels, channels)  # [starts, p · C], a view
    corner = centers // x.shape[2] * width + centers % x.shape[2]
    rows = corner[:, None] + torch.arange(PATCH_SIZE) * width
    return runs.index_select(0, rows.flatten()).view(len(centers), -1)
