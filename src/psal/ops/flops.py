"""FLOP formulas of the ops, for ``torch.utils.flop_counter.FlopCounterMode``.

A search costs the number of candidates times the cost of one comparison. Comparing two patches takes three operations
per element for "l2" (difference, square, sum) and two for "dot" and "cosine" (product, sum).
"""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch.utils.flop_counter import register_flop_formula

from psal.ops.native import INIT_KINDS
from psal.ops.reference import JUMPS, search_radii
from psal.options import SIMILARITIES

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
    """Estimate: early exits and incremental costs save work that is counted; the leaves that are searched vary."""
    batch, channels, *sq = query
    sk = key[2:]
    dims, cost = len(sq), _patch_cost(channels, patch_size, similarity)
    propagated = neighbors * dims + 1  # per sweep: the neighbor's k matches along each axis, one random step
    seeding = 0
    if INIT_KINDS[init] == "random":
        candidates = neighbors + iterations * (len(JUMPS) * 2 * dims + len(search_radii(sk)))
    elif INIT_KINDS[init] == "tree":  # every other pixel searches leaves: hence // 2 below
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
    """One product and one sum per element of the two patches of each match."""
    return math.prod(index) * 2 * 2 * query[1] * math.prod(patch_size)


def _attend_flops(
    index: Shape, score: Shape, value: Shape, patch_size: Sequence[int], temperature: float, *_: Any, **__: Any
) -> int:
    return math.prod(index) * math.prod(patch_size) * 2 * value[1]


def _attend_backward_flops(
    grad: Shape, index: Shape, score: Shape, value: Shape, out: Shape, log_mass: Shape, patch_size: Sequence[int],
    *_: Any, **__: Any,
) -> int:  # fmt: skip
    """The cost of the forward pass, once for the values' gradient and once for the scores'."""
    return 2 * math.prod(index) * math.prod(patch_size) * 2 * value[1]


for _op, _formula in (
    (torch.ops.psal.search, _search_flops),
    (torch.ops.psal.score, _score_flops),
    (torch.ops.psal.score_backward, _score_backward_flops),
    (torch.ops.psal.attend, _attend_flops),
    (torch.ops.psal.attend_backward, _attend_backward_flops),
):
    register_flop_formula(_op)(_formula)
