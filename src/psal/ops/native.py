"""The CPU kernels of csrc/ as torch ops: loading, fake versions, gradients. Nothing is computed here."""

import importlib.util
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor


def _load() -> None:
    spec = importlib.util.find_spec("psal._C")
    if spec is None or spec.origin is None:
        raise ImportError("psal was installed without its compiled part: install it again with `pip install .`")
    torch.ops.load_library(spec.origin)  # type: ignore[no-untyped-call]


_load()

# The words as the ops take them; csrc/kernels/arguments.h has the same order.
SIMILARITIES = ("l2", "dot", "cosine")
INITS = ("random", "tree", "matches")
PADDING_MODES = ("replicate", "reflect", "zeros")
SIMD_PATHS = ("baseline", "x86-64-v3", "x86-64-v4")  # as in csrc/simd/dispatch.h
_BEST_PATH: int = torch.ops.psal.simd_path()  # before anybody sets another


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
    similarity: str,
    init: str,
    padding_mode: str,
) -> tuple[Tensor, Tensor]:
    """Index and score of the k best keys; ``init`` is "tree", "random" or "matches" (from ``init_index``)."""
    index, score = torch.ops.psal.search(
        query, key, key_mask, query_mask, init_index, seed,
        patch_size, neighbors, iterations,
        SIMILARITIES.index(similarity), INITS.index(init), PADDING_MODES.index(padding_mode),
    )  # fmt: skip
    return index, score


def score(
    query: Tensor, key: Tensor, index: Tensor, patch_size: Sequence[int], similarity: str, padding_mode: str
) -> Tensor:
    """Score of each query's patch with the key patches at ``index``."""
    out: Tensor = torch.ops.psal.score(
        query, key, index, patch_size, SIMILARITIES.index(similarity), PADDING_MODES.index(padding_mode)
    )
    return out


def attend(index: Tensor, score: Tensor, value: Tensor, temperature: float) -> Tensor:
    """Softmax over the neighbours, times their values."""
    return aggregate(index, score, value, (1,) * (value.ndim - 2), temperature)


def aggregate(index: Tensor, score: Tensor, value: Tensor, patch_size: Sequence[int], temperature: float) -> Tensor:
    """The same over the neighbours of all pixels of a patch, shifted back."""
    out: Tensor = torch.ops.psal.attend(index, score, value, patch_size, temperature)[0]
    return out


def simd_paths() -> tuple[str, ...]:
    """The instruction sets that this machine can run the kernels with, the best one last."""
    return SIMD_PATHS[: _BEST_PATH + 1]


@contextmanager
def simd_path(name: str) -> Iterator[None]:
    """Run the kernels with a lower instruction set than the machine's best, to compare."""
    before = torch.ops.psal.set_simd_path(SIMD_PATHS.index(name))
    try:
        yield
    finally:
        torch.ops.psal.set_simd_path(before)


def _search_fake(query: Tensor, key: Tensor, *arguments: Any) -> tuple[Tensor, Tensor]:
    neighbors = arguments[5]
    shape = (query.shape[0], neighbors, *query.shape[2:])
    return query.new_empty(shape, dtype=torch.int64), query.new_empty(shape)


def _score_fake(query: Tensor, key: Tensor, index: Tensor, *arguments: Any) -> Tensor:
    return query.new_empty(index.shape)


def _score_backward_fake(grad: Tensor, query: Tensor, key: Tensor, *arguments: Any) -> tuple[Tensor, Tensor]:
    return query.new_empty(query.shape), key.new_empty(key.shape)


def _attend_fake(
    index: Tensor, score: Tensor, value: Tensor, patch_size: Sequence[int], temperature: float
) -> tuple[Tensor, Tensor]:
    grid = index.shape[2:]
    return value.new_empty((*value.shape[:2], *grid)), score.new_empty((index.shape[0], 2, *grid))


def _attend_backward_fake(
    grad: Tensor, index: Tensor, score: Tensor, value: Tensor, *arguments: Any
) -> tuple[Tensor, Tensor]:
    return score.new_empty(score.shape), value.new_empty(value.shape)


def _search_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    query, key, _, _, _, _, ctx.patch_size, _, _, ctx.similarity, _, ctx.padding_mode = inputs
    ctx.save_for_backward(query, key, *output)


def _search_backward(ctx: Any, _: Tensor | None, grad_score: Tensor | None) -> tuple[Tensor | None, ...]:
    return *_score_gradients(ctx, grad_score), *[None] * 10


def _score_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    query, key, index, ctx.patch_size, ctx.similarity, ctx.padding_mode = inputs
    ctx.save_for_backward(query, key, index, output)


def _score_backward(ctx: Any, grad_score: Tensor | None) -> tuple[Tensor | None, ...]:
    return *_score_gradients(ctx, grad_score), *[None] * 4


def _score_gradients(ctx: Any, grad_score: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
    if grad_score is None:
        return None, None
    query, key, index, score = ctx.saved_tensors
    grad_query, grad_key = torch.ops.psal.score_backward(
        grad_score, query, key, index, score, ctx.patch_size, ctx.similarity, ctx.padding_mode
    )
    return grad_query, grad_key


def _attend_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    *tensors, ctx.patch_size, ctx.temperature = inputs
    ctx.mark_non_differentiable(output[1])
    ctx.save_for_backward(*tensors, *output)


def _attend_backward(ctx: Any, grad: Tensor, _: Tensor | None) -> tuple[Tensor | None, ...]:
    grad_score, grad_value = torch.ops.psal.attend_backward(grad, *ctx.saved_tensors, ctx.patch_size, ctx.temperature)
    return None, grad_score, grad_value, None, None


torch.library.register_fake("psal::search", _search_fake)
torch.library.register_fake("psal::score", _score_fake)
torch.library.register_fake("psal::score_backward", _score_backward_fake)
torch.library.register_fake("psal::attend", _attend_fake)
torch.library.register_fake("psal::attend_backward", _attend_backward_fake)
torch.library.register_autograd("psal::search", _search_backward, setup_context=_search_context)
torch.library.register_autograd("psal::score", _score_backward, setup_context=_score_context)
torch.library.register_autograd("psal::attend", _attend_backward, setup_context=_attend_context)


def _refuse_double_backward(ctx: Any, *grads: Tensor) -> None:
    raise RuntimeError("psal has no second derivatives: call backward or grad without create_graph=True")


for _name in ("score_backward", "attend_backward"):
    torch.library.register_autograd(f"psal::{_name}", _refuse_double_backward)
