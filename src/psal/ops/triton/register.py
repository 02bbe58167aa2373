"""The ops' implementations for CUDA and ROCm devices. The kernels are imported when an op is first called."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from psal.ops.morton import morton_seeds
from psal.ops.native import INIT_KINDS
from psal.ops.reference import schedule_of
from psal.options import PADDING_MODES, SIMILARITIES, SearchOptions, Start


def search(
    query: Tensor,
    key: Tensor,
    key_mask: Tensor | None,
    query_mask: Tensor | None,
    init_index: Tensor | None,
    seed: Tensor,
    patch_size: Sequence[int],
    neighbors: int,
    iterations: int,
    similarity: int,
    init: int,
    padding_mode: int,
) -> tuple[Tensor, Tensor]:
    """The op search. Half types are read as they are, and compared in float32."""
    from psal.ops.triton import score as scores
    from psal.ops.triton import search as searches
    from psal.ops.triton import seeds
    from psal.ops.triton.layout import PatchMaps

    maps = PatchMaps.of_op(query, key, patch_size, similarity, padding_mode)
    if maps.batch == 0:
        shape = (0, neighbors, *query.shape[2:])
        return query.new_empty(shape, dtype=torch.int64), query.new_empty(shape, dtype=maps.type)
    seed = seed.to(query.device, non_blocking=True)
    start = Start(INIT_KINDS[init], init_index, iterations)
    candidates = init_index
    if start.init == "tree":
        options = SearchOptions(
            tuple(patch_size), neighbors, similarity=SIMILARITIES[similarity], padding_mode=PADDING_MODES[padding_mode]
        )
        candidates = morton_seeds(query, key, key_mask, seed, options, seeds.closest)
    schedule = schedule_of(start, key.shape[2:])
    found = searches.search(maps, (key_mask, query_mask), candidates, seed, neighbors, schedule)
    return scores.finish(maps, found.index, found.best)


def score(
    query: Tensor, key: Tensor, index: Tensor, patch_size: Sequence[int], similarity: int, padding_mode: int
) -> Tensor:
    """The op score."""
    from psal.ops.triton import score as scores
    from psal.ops.triton.layout import PatchMaps

    maps = PatchMaps.of_op(query, key, patch_size, similarity, padding_mode)
    return scores.score(maps, index) if index.numel() else query.new_empty(index.shape, dtype=maps.type)


def score_backward(
    grad_score: Tensor,
    query: Tensor,
    key: Tensor,
    index: Tensor,
    score: Tensor,
    patch_size: Sequence[int],
    similarity: int,
    padding_mode: int,
) -> tuple[Tensor, Tensor]:
    """The op score_backward."""
    from psal.ops.triton import score as scores
    from psal.ops.triton.layout import PatchMaps

    if not index.numel():
        return query.new_zeros(query.shape), key.new_zeros(key.shape)
    maps = PatchMaps.of_op(query, key, patch_size, similarity, padding_mode)
    return scores.score_gradients(maps, grad_score, index, score)


def attend(
    index: Tensor, score: Tensor, value: Tensor, patch_size: Sequence[int], temperature: float
) -> tuple[Tensor, Tensor]:
    """The op attend. Values of half types are read as they are, and averaged in float32."""
    from psal.ops.triton import attend as attention

    inputs = attention.Attention(index, score, value, tuple(patch_size), temperature)
    return attention.attend(inputs)


def attend_backward(
    grad: Tensor,
    index: Tensor,
    score: Tensor,
    value: Tensor,
    out: Tensor,
    log_mass: Tensor,
    patch_size: Sequence[int],
    temperature: float,
) -> tuple[Tensor, Tensor]:
    """The op attend_backward."""
    from psal.ops.triton import attend as attention

    inputs = attention.Attention(index, score, value, tuple(patch_size), temperature)
    return attention.attend_gradients(inputs, grad, out, log_mass)


def _on_device_of_first(op: Callable[..., Any]) -> Callable[..., Any]:
    """Launch an op's kernels on the device of its first tensor: Triton launches on the current one."""

    def run(first: Tensor, *rest: Any) -> Any:
        with torch.cuda.device_of(first):
            return op(first, *rest)

    return run


for _op in (search, score, score_backward, attend, attend_backward):
    torch.library.impl(f"psal::{_op.__name__}", "CUDA")(_on_device_of_first(_op))
