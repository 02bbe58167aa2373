"""What the ops cost, for ``torch.utils.flop_counter.FlopCounterMode``: candidates evaluated times the cost of one.

A candidate costs three operations a number for "l2" (difference, square, sum) and two for a product.
"""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch.utils.flop_counter import register_flop_formula

from psal.ops.native import INITS, SIMILARITIES
from psal.ops.reference import JUMPS, search_radii

Shape = Sequence[int]

LEAF_SIZE, DESCRIPTOR = 64, 16  # csrc/kernels/tuning.h, descriptor-inl.h


def _patch_cost(channels: int, patch_size: Sequence[int], similarity: int) -> int:
    return (3 if SIMILARITIES[similarity] == "l2" else 2) * channels * math.prod(patch_size)


def _search_flops(
    query: Shape,
    key: Shape,
    key_mask: Any,
    query_mask: Any,
    init_index: Shape | None,
    seed: Any,
    patch_size: Sequence[int],
    neighbors: int,
    iterations: int,
    similarity: int,
    init: int,
    *_: Any,
    **__: Any,
) -> int:
    """All candidates in full: early exits, repeated candidates and shifted costs make the real number smaller."""
    batch, channels, *sq = query
    sk = key[2:]
    dims, cost = len(sq), _patch_cost(channels, patch_size, similarity)
    propagated = neighbors * dims + 1  # a sweep: the neighbour's matches along each axis, and one random step
    seeding = 0
    if INITS[init] == "random":
        candidates = neighbors + iterations * (len(JUMPS) * 2 * dims + len(search_radii(sk)))
    elif INITS[init] == "tree":  # leaves are looked into at every other pixel
        candidates = neighbors + propagated * (1 + iterations)
        seeding = (1 + dims) * LEAF_SIZE * 3 * DESCRIPTOR // 2
    else:
        candidates = neighbors + (init_index[1] if init_index else 0) + propagated * iterations
    return batch * math.prod(sq) * (candidates * cost + seeding)


def _score_flops(
    query: Shape, key: Shape, index: Shape, patch_size: Sequence[int], similarity: int, *_: Any, **__: Any
) -> int:
    return math.prod(index) * _patch_cost(query[1], patch_size, similarity)


def _score_backward_flops(
    grad: Shape, query: Shape, key: Shape, index: Shape, score: Shape, patch_size: Sequence[int], *_: Any, **__: Any
) -> int:
    """A product and a sum for every number of each match's two patches."""
    return math.prod(index) * 2 * 2 * query[1] * math.prod(patch_size)


def _attend_flops(
    index: Shape, score: Shape, value: Shape, patch_size: Sequence[int], temperature: float, *_: Any, **__: Any
) -> int:
    return math.prod(index) * math.prod(patch_size) * 2 * value[1]


def _attend_backward_flops(
    grad: Shape, index: Shape, score: Shape, value: Shape, out: Shape, log_mass: Shape, patch_size: Sequence[int],
    *_: Any, **__: Any,
) -> int:  # fmt: skip
    """As much for the values' gradient, and as much for the scores'."""
    return 2 * math.prod(index) * math.prod(patch_size) * 2 * value[1]


for _op, _formula in (
    (torch.ops.psal.search, _search_flops),
    (torch.ops.psal.score, _score_flops),
    (torch.ops.psal.score_backward, _score_backward_flops),
    (torch.ops.psal.attend, _attend_flops),
    (torch.ops.psal.attend_backward, _attend_backward_flops),
):
    register_flop_formula(_op)(_formula)
