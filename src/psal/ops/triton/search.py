"""The search: random keys and given candidates, then jump flooding with random draws.

The schedule, the random numbers and the rule for ties are those of :mod:`psal.ops.reference`. The matches so far,
``(B, K, N)``, are read from one buffer and written to another, so that a jump sees the matches from before it.
"""

from dataclasses import dataclass
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from psal.ops.reference import JUMPS, Schedule, draw_stream
from psal.ops.triton import best_k
from psal.ops.triton.layout import PatchMaps, search_options, tiles_over
from psal.ops.triton.patch_sum import patch_score
from psal.ops.triton.random import random_integers
from psal.ops.triton.tiles import inside, tile_count, tile_of, unflatten


@triton.jit
def start(
    query, key, query_factor, key_factor, query_mask, key_mask, keys, key_count, candidates, candidate_count, seed,
    out_index, out_best, qd, qh, qw, kd, kh, kw,
    K: tl.constexpr, QUERY_MASK: tl.constexpr, KEY_MASK: tl.constexpr, DIMS: tl.constexpr,
    TZ: tl.constexpr, TY: tl.constexpr, TX: tl.constexpr,
    PZ: tl.constexpr, PY: tl.constexpr, PX: tl.constexpr, C: tl.constexpr, CB: tl.constexpr,
    L2: tl.constexpr, COSINE: tl.constexpr, WIDE: tl.constexpr, TYPE: tl.constexpr,
):  # fmt: skip
    """Start with K random keys per query, then push the candidates ``(B, candidate_count, N)``.

    With KEY_MASK, ``keys`` ``(B, M)`` holds the valid keys first and ``key_count`` ``(B,)`` how many there are.
    """
    tiles = tile_count(qd, qh, qw, TZ, TY, TX)
    b = tl.program_id(0) // tiles
    z, y, x, active = tile_of(tl.program_id(0) % tiles, qd, qh, qw, TZ, TY, TX)
    queries, all_keys = qd * qh * qw, kd * kh * kw
    at = (z * qh + y) * qw + x
    exists = active
    batch = b.to(tl.int64)
    if QUERY_MASK:
        active = active & (tl.load(query_mask + batch * queries + at) != 0)
    count = tl.zeros_like(batch) + all_keys
    if KEY_MASK:
        count = tl.load(key_count + b)
    number = tl.load(seed)
    counter = (b * queries + at).to(tl.uint32)
    rotation = random_integers(number, tl.zeros_like(b), counter, tl.zeros_like(at) + count.to(tl.int32))
    index, best = best_k.empty(at, K, TYPE)
    for i in tl.range(K + candidate_count):  # one loop for both: two copies of the comparison spill registers
        stratum = tl.minimum(i, K - 1)
        low, high = count * stratum // K, count * (stratum + 1) // K
        size = tl.zeros_like(at) + (high - low).to(tl.int32)
        chosen = random_integers(number, stratum + 1, counter, size).to(tl.int64) + low + rotation
        chosen = tl.where(chosen >= count, chosen - count, chosen)
        if KEY_MASK:
            chosen = tl.load(keys + batch * all_keys + chosen)
        at_candidate = (batch * candidate_count + (i - K)) * queries + at
        given = tl.load(candidates + at_candidate, mask=active & (i >= K), other=-1)
        chosen = tl.where(i < K, chosen, given)
        allowed = active & (chosen >= 0) & (chosen < all_keys)
        kz, ky, kx = unflatten(tl.where(allowed, chosen, 0).to(tl.int32), kh, kw, DIMS)
        index, best = _consider(
            index, best, query, key, query_factor, key_factor, key_mask, batch, z, y, x, kz, ky, kx, allowed, i,
            qd, qh, qw, kd, kh, kw, K, KEY_MASK, PZ, PY, PX, C, CB, L2, COSINE, WIDE, TYPE,
        )  # fmt: skip
    best_k.store(out_index, out_best, batch * K * queries + at, queries, index, best, exists, K)


@triton.jit(do_not_specialize=["stream", "jump", "radius", "draws"])
def flood(
    query, key, query_factor, key_factor, key_mask, seed, in_index, in_best, out_index, out_best,
    jump, stream, radius, draws, qd, qh, qw, kd, kh, kw,
    K: tl.constexpr, KEY_MASK: tl.constexpr, DIMS: tl.constexpr,
    TZ: tl.constexpr, TY: tl.constexpr, TX: tl.constexpr,
    PZ: tl.constexpr, PY: tl.constexpr, PX: tl.constexpr, C: tl.constexpr, CB: tl.constexpr,
    L2: tl.constexpr, COSINE: tl.constexpr, WIDE: tl.constexpr, TYPE: tl.constexpr,
):  # fmt: skip
    """Push the best matches of the pixels one jump away, shifted back; then ``draws`` random keys.

    A masked query has the best match −1, here and where a neighbor reads it.
    """
    tiles = tile_count(qd, qh, qw, TZ, TY, TX)
    b = tl.program_id(0) // tiles
    z, y, x, exists = tile_of(tl.program_id(0) % tiles, qd, qh, qw, TZ, TY, TX)
    queries = qd * qh * qw
    at = (z * qh + y) * qw + x
    batch = b.to(tl.int64)
    matches = batch * K * queries
    index, best = best_k.load(in_index, in_best, matches + at, queries, K)
    active = exists & (index[0] >= 0)
    for direction in tl.range(2 * DIMS):
        axis = direction // 2 + (3 - DIMS)
        step = (direction % 2 * 2 - 1) * jump
        dz, dy, dx = tl.where(axis == 0, step, 0), tl.where(axis == 1, step, 0), tl.where(axis == 2, step, 0)
        near = active & inside(z + dz, y + dy, x + dx, qd, qh, qw)
        match = tl.load(in_index + matches + at + (dz * qh + dy) * qw + dx, mask=near, other=-1)
        kz, ky, kx = unflatten(tl.maximum(match, 0), kh, kw, DIMS)
        kz, ky, kx = kz - dz, ky - dy, kx - dx
        allowed = near & (match >= 0) & inside(kz, ky, kx, kd, kh, kw)
        index, best = _consider(
            index, best, query, key, query_factor, key_factor, key_mask, batch, z, y, x, kz, ky, kx, allowed, K,
            qd, qh, qw, kd, kh, kw, K, KEY_MASK, PZ, PY, PX, C, CB, L2, COSINE, WIDE, TYPE,
        )  # fmt: skip
    number = tl.load(seed)
    counter = (b * queries + at).to(tl.uint32)
    for _ in tl.range(draws):
        kz, ky, kx = unflatten(tl.maximum(index[0], 0), kh, kw, DIMS)
        if DIMS == 3:
            kz = _draw(kz, radius, kd, number, stream, counter)
            stream += 1
        if DIMS >= 2:
            ky = _draw(ky, radius, kh, number, stream, counter)
            stream += 1
        kx = _draw(kx, radius, kw, number, stream, counter)
        stream += 1
        index, best = _consider(
            index, best, query, key, query_factor, key_factor, key_mask, batch, z, y, x, kz, ky, kx, active, K,
            qd, qh, qw, kd, kh, kw, K, KEY_MASK, PZ, PY, PX, C, CB, L2, COSINE, WIDE, TYPE,
        )  # fmt: skip
        radius = radius // 2
    best_k.store(out_index, out_best, matches + at, queries, index, best, exists, K)


@triton.jit
def _draw(center, radius, size, seed, stream, counter):
    """Draw a coordinate at most ``radius`` from the center."""
    low, high = tl.maximum(center - radius, 0), tl.minimum(center + radius, size - 1)
    return low + random_integers(seed, stream, counter, high - low + 1)


@triton.jit
def _consider(
    index, best, query, key, query_factor, key_factor, key_mask, batch, z, y, x, kz, ky, kx, allowed, filled,
    qd, qh, qw, kd, kh, kw, K: tl.constexpr, KEY_MASK: tl.constexpr,
    PZ: tl.constexpr, PY: tl.constexpr, PX: tl.constexpr, C: tl.constexpr, CB: tl.constexpr,
    L2: tl.constexpr, COSINE: tl.constexpr, WIDE: tl.constexpr, TYPE: tl.constexpr,
):  # fmt: skip
    """Push the keys at kz, ky, kx where they are allowed, valid and new; ``filled`` matches are there already."""
    candidate = (kz * kh + ky) * kw + kx
    if KEY_MASK:
        keys = batch * (kd * kh * kw)
        allowed = allowed & (tl.load(key_mask + keys + candidate, mask=allowed, other=0) != 0)
    allowed = allowed & (best_k.contains(index, candidate, K) == 0)
    kz, ky, kx = tl.where(allowed, kz, 0), tl.where(allowed, ky, 0), tl.where(allowed, kx, 0)
    found = patch_score(
        query, key, query_factor, key_factor, batch, z, y, x, kz, ky, kx, allowed, qd, qh, qw, kd, kh, kw,
        PZ, PY, PX, C, CB, L2, COSINE, WIDE, TYPE,
    )  # fmt: skip
    found = tl.where(allowed & (found == found), found, -float("inf"))
    return best_k.push(index, best, tl.where(allowed, candidate, -1), found, filled, K)


@dataclass
class MatchBuffers:
    """The matches so far, ``(B, K, N)``, and room for the next ones."""

    index: Tensor
    best: Tensor
    next_index: Tensor
    next_best: Tensor

    @classmethod
    def empty(cls, maps: PatchMaps, neighbors: int) -> "MatchBuffers":
        shape = (maps.batch, neighbors, *maps.query.shape[2:])
        index, best = (maps.query.new_empty((2, *shape), dtype=dtype) for dtype in (torch.int32, maps.type))
        return cls(index[0], best[0], index[1], best[1])

    def swap(self) -> None:
        self.index, self.next_index = self.next_index, self.index
        self.best, self.next_best = self.next_best, self.best


def search(
    maps: PatchMaps,
    masks: tuple[Tensor | None, Tensor | None],
    candidates: Tensor | None,
    seed: Tensor,
    neighbors: int,
    schedule: Schedule,
) -> MatchBuffers:
    """Find each query's k best keys.

    Args:
        maps: query and key.
        masks: of key and query, or None.
        candidates: int64 ``(B, m, *Sq)``, keys to start from beside the random ones; others are skipped.
        seed: 0-d int64, on the maps' device.
        neighbors: k.
        schedule: of the floods.

    Returns:
        Index and score of the matches; the score is −∞ where it is NaN.
    """
    found = MatchBuffers.empty(maps, neighbors)
    unused = found.index
    key_mask, query_mask = (unused if mask is None else mask.contiguous() for mask in masks)
    keys, key_count = unused, unused
    if masks[0] is not None:
        valid = masks[0].flatten(1)  # [B, M]
        keys = valid.to(torch.int8).argsort(dim=1, descending=True, stable=True)  # [B, M], valid ones first
        key_count = valid.sum(1)  # [B]
    constants: dict[str, Any] = {**maps.constants, "K": neighbors, "KEY_MASK": masks[0] is not None}
    options = search_options(constants)
    programs = (maps.batch * tiles_over(maps.sq, constants),)
    inputs = maps.padded_query, maps.padded_key, maps.query_factor, maps.key_factor
    start[programs](
        *inputs, query_mask, key_mask, keys, key_count,
        unused if candidates is None else candidates.contiguous(), 0 if candidates is None else candidates.shape[1],
        seed, found.index, found.best, *maps.sq, *maps.sk, QUERY_MASK=masks[1] is not None, **constants, **options,
    )  # fmt: skip
    sk = maps.key.shape[2:]
    for flood_number in range(schedule.floods):
        for jump in JUMPS:
            draws = len(schedule.radii) if jump == JUMPS[-1] else 0
            stream = draw_stream(neighbors, flood_number, 0, 0, sk)
            flood[programs](
                *inputs, key_mask, seed, found.index, found.best, found.next_index, found.next_best,
                jump, stream, schedule.radii[0], draws, *maps.sq, *maps.sk, **constants, **options,
            )  # fmt: skip
            found.swap()
    return found
