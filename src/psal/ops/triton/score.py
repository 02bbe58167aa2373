"""Scores of given matches, and their gradients."""

import math

import torch
import triton
import triton.language as tl
from torch import Tensor

from psal.ops.grid import NORM_EPSILON
from psal.ops.triton import links
from psal.ops.triton.layout import OPTIONS, PatchMaps, fold_border, tiles_over
from psal.ops.triton.patch_sum import patch_score
from psal.ops.triton.tiles import tile_count, tile_of, unflatten


@triton.jit
def score_matches(
    query, key, query_factor, key_factor, index, known, out, out_index, matches, qd, qh, qw, kd, kh, kw,
    KNOWN: tl.constexpr, DIMS: tl.constexpr, TZ: tl.constexpr, TY: tl.constexpr, TX: tl.constexpr,
    PZ: tl.constexpr, PY: tl.constexpr, PX: tl.constexpr, C: tl.constexpr, CB: tl.constexpr,
    L2: tl.constexpr, COSINE: tl.constexpr, WIDE: tl.constexpr, TYPE: tl.constexpr,
):  # fmt: skip
    """Score the matches ``(B, matches, N)``; −∞ where the index is −1.

    With KNOWN, scores above −∞ are copied from ``known``: only the others, which may be NaN, are computed again. The
    index is copied too, from int32 to int64.
    """
    tiles = tile_count(qd, qh, qw, TZ, TY, TX)
    b = tl.program_id(0) // tiles
    z, y, x, exists = tile_of(tl.program_id(0) % tiles, qd, qh, qw, TZ, TY, TX)
    queries = qd * qh * qw
    batch = b.to(tl.int64)
    for i in tl.range(matches):
        at = (batch * matches + i) * queries + (z * qh + y) * qw + x
        match = tl.load(index + at)
        present = exists & (match >= 0) & (match < kd * kh * kw)
        needed = present
        found = tl.full(match.shape, -float("inf"), TYPE)
        if KNOWN:
            found = tl.load(known + at)
            needed = present & (found == -float("inf"))
            tl.store(out_index + at, match.to(tl.int64), mask=exists)
        if tl.max(needed.to(tl.int32), 0) > 0:
            kz, ky, kx = unflatten(tl.where(present, match, 0).to(tl.int32), kh, kw, DIMS)
            computed = patch_score(
                query, key, query_factor, key_factor, batch, z, y, x, kz, ky, kx, needed, qd, qh, qw, kd, kh, kw,
                PZ, PY, PX, C, CB, L2, COSINE, WIDE, TYPE,
            )  # fmt: skip
            found = tl.where(needed, computed, found)
        tl.store(out + at, found, mask=exists)


def score(maps: PatchMaps, index: Tensor) -> Tensor:
    """Score the matches ``(B, m, *Sq)``; −∞ where they are −1."""
    out = maps.query.new_empty(index.shape, dtype=maps.type)
    _launch(maps, index.contiguous(), out, out, index, known=False)
    return out


def finish(maps: PatchMaps, index: Tensor, best: Tensor) -> tuple[Tensor, Tensor]:
    """Return a search's matches with int64 index, and NaN where the score is NaN and was ranked as −∞."""
    out, out_index = torch.empty_like(best), torch.empty_like(index, dtype=torch.int64)
    _launch(maps, index, best, out, out_index, known=True)
    return out_index, out


def _launch(maps: PatchMaps, index: Tensor, known_score: Tensor, out: Tensor, out_index: Tensor, known: bool) -> None:
    constants = maps.constants
    score_matches[(maps.batch * tiles_over(maps.sq, constants),)](
        maps.padded_query, maps.padded_key, maps.query_factor, maps.key_factor, index, known_score, out, out_index,
        index.shape[1], *maps.sq, *maps.sk, KNOWN=known, **constants, **OPTIONS,
    )  # fmt: skip


def score_gradients(maps: PatchMaps, grad_score: Tensor, index: Tensor, score: Tensor) -> tuple[Tensor, Tensor]:
    """Return the gradients of query and key; the formulas are in csrc/README.md.

    Args:
        maps: query and key.
        grad_score: of the scores, ``(B, k, *Sq)``.
        index, score: of the matches, ``(B, k, *Sq)``.
    """
    index, grad, score = index.flatten(2), grad_score.flatten(2), score.flatten(2)  # [B, k, N]
    zero = torch.zeros((), dtype=maps.type, device=grad.device)
    grad = grad.where(index >= 0, zero)
    if maps.similarity == "cosine":
        query_norm = maps.query_factor[:, None].expand_as(grad)  # 1 / ‖q‖
        key_norm = maps.key_factor.gather(1, index.clamp_min(0).flatten(1)).reshape(index.shape)  # 1 / ‖k‖
        along = -grad * score.where(index >= 0, zero)
        weight = grad * query_norm * key_norm
        query_weight, key_weight = (along * squared_unless_clamped(norm) for norm in (query_norm, key_norm))
    else:
        weight = 2 * grad if maps.similarity == "l2" else grad
        query_weight = key_weight = weight  # not read
    keys = math.prod(maps.sk)
    by_query = links.by_query(index, (weight, query_weight))
    by_key = links.by_key(index, (weight, key_weight), keys)
    grad_query = links.sum_over_patches(maps, by_query, of_key=False)
    grad_key = links.sum_over_patches(maps, by_key, of_key=True)
    folded = (fold_border(grad, maps.sides, maps.padding_mode) for grad in (grad_query, grad_key))
    grad_query, grad_key = (grad.to(maps.query.dtype).contiguous() for grad in folded)
    return grad_query, grad_key


def squared_unless_clamped(inverse_norm: Tensor) -> Tensor:
    """Square inverse norms; 0 where the norm was raised to the smallest one, a constant without a gradient."""
    return inverse_norm.square().where(inverse_norm < 0.999999 / NORM_EPSILON, 0)
