"""What the layer's benchmark times: searches, and forward and backward passes."""

from typing import Any

import torch
from torch import Tensor

import psal
from benchmarks import faiss_search
from benchmarks.faiss_search import Patches
from benchmarks.frames import Pair
from psal.measure.timing import Case

PATCH_SIZE = 7
NEIGHBORS = 3
SEED = 0


def search(pair: Pair, **options: Any) -> psal.Matches:
    return psal.patch_match(pair.query, pair.key, patch_size=PATCH_SIZE, neighbors=NEIGHBORS, seed=SEED, **options)


def search_case(pair: Pair, **options: Any) -> Case:
    return Case(lambda _: search(pair, **options))


def faiss_case(query: Patches, key: Patches, threads: int) -> Case:
    return Case(lambda _: faiss_search.build_and_search(query, key, NEIGHBORS, threads))


def attention(query: Tensor, key: Tensor, value: Tensor, *, aggregate: bool = False) -> Tensor:
    out = psal.patch_attention(
        query, key, value, aggregate=aggregate, patch_size=PATCH_SIZE, neighbors=NEIGHBORS, seed=SEED
    )
    assert isinstance(out, Tensor)
    return out


def forward_case(pair: Pair, aggregate: bool = False, threads: int | None = None, gradients: bool = False) -> Case:
    """The layer on a pair's features; the value is the key."""
    inputs = [x.clone().requires_grad_(gradients) for x in (pair.query, pair.key, pair.key)]
    return Case(lambda _: attention(*inputs, aggregate=aggregate), lambda: set_threads(threads))


def backward_case(pair: Pair, aggregate: bool = False, threads: int | None = None) -> Case:
    """Gradients of all three inputs; the forward pass before it is not timed."""
    inputs = [x.clone().requires_grad_() for x in (pair.query, pair.key, pair.key)]
    cotangent = torch.rand(pair.query.shape, generator=torch.Generator().manual_seed(SEED))

    def prepare() -> Tensor:
        set_threads(threads)
        return attention(*inputs, aggregate=aggregate)

    return Case(lambda out: torch.autograd.grad(out, inputs, cotangent), prepare)


def set_threads(threads: int | None) -> None:
    """Set the size of torch's thread pool; None leaves it unchanged."""
    if threads is not None:
        torch.set_num_threads(threads)
