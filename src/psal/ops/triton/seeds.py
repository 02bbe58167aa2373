"""The scan of :func:`psal.ops.morton.closest` as one kernel, which stores none of the compared descriptors."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from psal.ops.morton import WINDOW, Curve
from psal.ops.triton import best_k
from psal.ops.triton.layout import OPTIONS

LANES = 64  # queries per program


@triton.jit
def scan(
    queries, keys, orders, positions, totals, out, query_size, key_size, batch_size, tables, window,
    K: tl.constexpr, D: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """Find the K keys with the closest descriptors in a window around each query's position on each curve.

    ``orders`` is ``(tables, B, M)``, ``positions`` ``(tables, B, N)``; ``totals`` ``(B,)`` counts the valid keys.
    """
    blocks = tl.cdiv(query_size, LANES)
    batch = (tl.program_id(0) // blocks).to(tl.int64)
    query = tl.program_id(0) % blocks * LANES + tl.arange(0, LANES)
    exists = query < query_size
    query = tl.minimum(query, query_size - 1)
    component = tl.arange(0, D)[None, :]
    described = tl.load(queries + (batch * query_size + query[:, None]) * D + component)
    keys += batch * key_size * D
    total = tl.load(totals + batch).to(tl.int32)
    index, best = best_k.empty(query, K, tl.float32)
    for step in tl.range(tables * window):
        table = (step // window).to(tl.int64) * batch_size + batch
        position = tl.load(positions + table * query_size + query).to(tl.int32)
        first = tl.maximum(tl.minimum(position - window // 2, total - window), 0)
        place = first + step % window
        candidate = tl.load(orders + table * key_size + tl.minimum(place, key_size - 1)).to(tl.int32)
        near = tl.load(keys + candidate[:, None].to(tl.int64) * D + component)
        difference = near - described
        closeness = -tl.sum(difference * difference, 1)
        new = (place < total) & (best_k.contains(index, candidate, K) == 0)
        closeness = tl.where(new, closeness, -float("inf"))
        index, best = best_k.push(index, best, candidate, closeness, K, K)
    for i in tl.static_range(K):
        tl.store(out + (batch * K + i) * query_size + query, index[i].to(tl.int64), mask=exists)


def closest(queries: Tensor, keys: Tensor, valid: Tensor | None, curves: list[Curve], kept: int) -> Tensor:
    """Do what :func:`psal.ops.morton.closest` does."""
    batch, query_count, size = queries.shape
    key_count = keys.shape[1]
    all_keys = torch.full((batch,), key_count, dtype=torch.int64, device=keys.device)
    totals = all_keys if valid is None else valid.sum(1)
    orders, positions = (torch.stack([curve[part] for curve in curves]) for part in (0, 1))
    out = torch.empty(batch, kept, query_count, dtype=torch.int64, device=keys.device)
    lanes = 1024 if triton.knobs.runtime.interpret else LANES
    scan[(batch * -(-query_count // lanes),)](
        queries.contiguous(), keys.contiguous(), orders, positions, totals, out, query_count, key_count, batch,
        len(curves), min(WINDOW, key_count), K=kept, D=size, LANES=lanes, **OPTIONS,
    )  # fmt: skip
    return out
