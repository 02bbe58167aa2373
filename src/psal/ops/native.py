"""The CPU kernels of csrc/ as torch ops: loads the library, and registers shapes for tracing, and gradients."""

import importlib.util
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from psal.matches import Matches
from psal.options import INITS, PADDING_MODES, SIMILARITIES, SearchOptions
from psal.seeds import draw_seed


def _load() -> None:
    spec = importlib.util.find_spec("psal._C")
    if spec is None or spec.origin is None:
        raise ImportError("psal was installed without its compiled part: install it again with `pip install .`")
    torch.ops.load_library(spec.origin)  # type: ignore[no-untyped-call]


_load()

# Positions in these tuples and in those of psal.options are the ops' codes, as in csrc/kernels/arguments.h.
INIT_KINDS = (*INITS, "matches")
SIMD_PATHS = ("baseline", "x86-64-v3", "x86-64-v4")  # as in csrc/simd/dispatch.h
_BEST_PATH: int = torch.ops.psal.simd_path()  # read before `simd_path` changes it


def search(
    query: Tensor, key: Tensor, key_mask: Tensor | None, query_mask: Tensor | None, options: SearchOptions
) -> Matches:
    """Find each query's k best keys; see :class:`psal.ops.Backend`."""
    assert isinstance(options.similarity, str)
    start = options.start(default_init="tree")
    index, score = torch.ops.psal.search(
        query, key, key_mask, query_mask, start.index, draw_seed(options.seed),
        options.sides(query.ndim - 2), options.neighbors, start.iterations,
        SIMILARITIES.index(options.similarity), INIT_KINDS.index(start.init), PADDING_MODES.index(options.padding_mode),
    )  # fmt: skip
    return Matches(index, score)


def score(query: Tensor, key: Tensor, index: Tensor, options: SearchOptions) -> Tensor:
    """Score each query's patch against the key patches at ``index``."""
    assert isinstance(options.similarity, str)
    out: Tensor = torch.ops.psal.score(
        query, key, index, options.sides(query.ndim - 2),
        SIMILARITIES.index(options.similarity), PADDING_MODES.index(options.padding_mode),
    )  # fmt: skip
    return out


def attend(matches: Matches, value: Tensor, temperature: float) -> Tensor:
    """Average the values at each query's matches, weighted by a softmax of the scores."""
    return aggregate(matches, value, (1,) * (value.ndim - 2), temperature)


def aggregate(matches: Matches, value: Tensor, sides: Sequence[int], temperature: float) -> Tensor:
    """Average the values at the matches of all pixels in a patch window, each shifted back to the center."""
    out: Tensor = torch.ops.psal.attend(matches.index, matches.score, value, sides, temperature)[0]
    return out


def simd_paths() -> tuple[str, ...]:
    """Return the instruction sets that this machine supports, best last."""
    return SIMD_PATHS[: _BEST_PATH + 1]


@contextmanager
def simd_path(name: str) -> Iterator[None]:
    """Run the kernels with the given instruction set inside a ``with`` block, for comparisons."""
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
