"""The compiled ops registered with PyTorch: loads the library, and adds gradients, output shapes and vmap rules."""

import importlib.util
from collections.abc import Sequence
from functools import partial
from typing import Any, NoReturn

import torch
from torch import Tensor


def _load() -> None:
    spec = importlib.util.find_spec("psal._C")
    if spec is None or spec.origin is None:
        raise ImportError("psal was installed without its compiled part: install it again with `pip install .`")
    torch.ops.load_library(spec.origin)  # type: ignore[no-untyped-call]


_load()


def _search_fake(query: Tensor, key: Tensor, *arguments: Any) -> tuple[Tensor, Tensor]:
    neighbors = arguments[5]
    shape = (query.shape[0], neighbors, *query.shape[2:])
    return query.new_empty(shape, dtype=torch.int64), query.new_empty(shape, dtype=_score_type(query))


def _score_fake(query: Tensor, key: Tensor, index: Tensor, *arguments: Any) -> Tensor:
    return query.new_empty(index.shape, dtype=_score_type(query))


def _score_type(query: Tensor) -> torch.dtype:
    return torch.promote_types(query.dtype, torch.float32)  # kernels that take half types compare in float32


def _score_backward_fake(grad: Tensor, query: Tensor, key: Tensor, *arguments: Any) -> tuple[Tensor, Tensor]:
    return query.new_empty(query.shape), key.new_empty(key.shape)


def _attend_fake(
    index: Tensor, score: Tensor, value: Tensor, patch_size: Sequence[int], temperature: float
) -> tuple[Tensor, Tensor]:
    grid = index.shape[2:]
    out_type = torch.promote_types(value.dtype, score.dtype)
    return (
        value.new_empty((*value.shape[:2], *grid), dtype=out_type),
        score.new_empty((index.shape[0], 2, *grid), dtype=out_type),
    )


def _attend_backward_fake(
    grad: Tensor, index: Tensor, score: Tensor, value: Tensor, *arguments: Any
) -> tuple[Tensor, Tensor]:
    return score.new_empty(score.shape), value.new_empty(value.shape)


def _solve_poisson_fake(right_side: Tensor, unknown: Tensor, *arguments: Any) -> Tensor:
    return right_side.new_empty((right_side.shape[0], *unknown.shape))


def run(op: Any, function: type[torch.autograd.Function], *inputs: Any) -> Any:
    """Run an op with gradients.

    Eager code uses the autograd function, as torch.func and forward mode need it. The compiler cannot trace a function
    with a forward mode, so compiled code calls the op, which has the same gradients registered.
    """
    return op(*inputs) if torch.compiler.is_compiling() else function.apply(*inputs)  # type: ignore[no-untyped-call]


class Search(torch.autograd.Function):
    """The op search, with gradients of the scores."""

    generate_vmap_rule = True

    @staticmethod
    def forward(*inputs: Any) -> tuple[Tensor, Tensor]:
        index, score = torch.ops.psal.search(*inputs)
        return index, score

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        query, key, _, _, _, _, patch_size, _, _, similarity, _, padding_mode = inputs
        index, score = output
        ctx.options = patch_size, similarity, padding_mode
        ctx.mark_non_differentiable(index)
        ctx.save_for_backward(query, key, index, score)

    @staticmethod
    def backward(ctx: Any, _: Tensor | None, grad_score: Tensor | None) -> tuple[Tensor | None, ...]:
        return _gradients_of_maps(ctx, grad_score, inputs=12)

    @staticmethod
    def jvp(ctx: Any, *tangents: Tensor | None) -> None:
        _refuse_forward_mode("patch_match")


class Score(torch.autograd.Function):
    """The op score, with gradients."""

    generate_vmap_rule = True

    @staticmethod
    def forward(*inputs: Any) -> Tensor:
        score: Tensor = torch.ops.psal.score(*inputs)
        return score

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        query, key, index, *options = inputs
        ctx.options = options
        ctx.save_for_backward(query, key, index, output)

    @staticmethod
    def backward(ctx: Any, grad_score: Tensor | None) -> tuple[Tensor | None, ...]:
        return _gradients_of_maps(ctx, grad_score, inputs=6)

    @staticmethod
    def jvp(ctx: Any, *tangents: Tensor | None) -> None:
        _refuse_forward_mode("exact_match")


def _gradients_of_maps(ctx: Any, grad_score: Tensor | None, inputs: int) -> tuple[Tensor | None, ...]:
    """Return the gradients of query and key, which come first, and None for all other inputs of an op."""
    if grad_score is None:
        return (None,) * inputs
    gradients = run(torch.ops.psal.score_backward, ScoreGradient, grad_score, *ctx.saved_tensors, *ctx.options)
    return *gradients, *[None] * (inputs - 2)


class Attend(torch.autograd.Function):
    """The op attend, with gradients of scores and values, and forward mode of values."""

    generate_vmap_rule = True

    @staticmethod
    def forward(*inputs: Any) -> tuple[Tensor, Tensor]:
        out, log_mass = torch.ops.psal.attend(*inputs)
        return out, log_mass

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        index, score, value, *options = inputs
        out, log_mass = output
        ctx.options = options
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(log_mass)
        ctx.save_for_backward(index, score, value, out, log_mass)
        ctx.save_for_forward(index, score)

    @staticmethod
    def backward(ctx: Any, grad: Tensor | None, _: Tensor | None) -> tuple[Tensor | None, ...]:
        if grad is None:
            return None, None, None, None, None
        gradients = run(torch.ops.psal.attend_backward, AttendGradient, grad, *ctx.saved_tensors, *ctx.options)
        return None, *gradients, None, None

    @staticmethod
    def jvp(
        ctx: Any, _: None, score: Tensor | None, value: Tensor | None, *options: None
    ) -> tuple[Tensor | None, None]:
        if score is not None:
            _refuse_forward_mode("scores in attend or aggregate")
        assert value is not None
        return torch.ops.psal.attend(*ctx.saved_tensors, value, *ctx.options)[0], None  # linear in the value


class _Gradient(torch.autograd.Function):
    """Base class of the ops that compute gradients and have no derivatives themselves."""

    generate_vmap_rule = True

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> None:
        raise RuntimeError("psal has no second derivatives: call backward or grad without create_graph=True")


class ScoreGradient(_Gradient):
    """The op score_backward."""

    @staticmethod
    def forward(*inputs: Any) -> tuple[Tensor, Tensor]:
        grad_query, grad_key = torch.ops.psal.score_backward(*inputs)
        return grad_query, grad_key


class AttendGradient(_Gradient):
    """The op attend_backward."""

    @staticmethod
    def forward(*inputs: Any) -> tuple[Tensor, Tensor]:
        grad_score, grad_value = torch.ops.psal.attend_backward(*inputs)
        return grad_score, grad_value


def _refuse_forward_mode(what: str) -> NoReturn:
    raise RuntimeError(f"psal has no forward-mode derivatives of {what}: use backward, torch.func.grad or vjp")


def _vmap_over_batch(op: Any, info: Any, in_dims: tuple[int | None, ...], *inputs: Any) -> tuple[Any, Any]:
    """Run an op under vmap: merge the mapped axis into the batch axis, which every tensor but the seed has."""

    def merged(x: Any, dim: int | None) -> Any:
        if not isinstance(x, Tensor):
            return x
        if x.ndim - (dim is not None) == 0:  # the seed: elements of a batch draw different numbers anyway
            return x if dim is None else x[0]
        x = x.expand(info.batch_size, *x.shape) if dim is None else x.movedim(dim, 0)
        return x.flatten(0, 1)

    out = op(*(merged(x, dim) for x, dim in zip(inputs, in_dims, strict=True)))
    if isinstance(out, Tensor):
        return out.reshape(info.batch_size, -1, *out.shape[1:]), 0
    return tuple(x.reshape(info.batch_size, -1, *x.shape[1:]) for x in out), (0,) * len(out)


torch.library.register_fake("psal::search", _search_fake)
torch.library.register_fake("psal::score", _score_fake)
torch.library.register_fake("psal::score_backward", _score_backward_fake)
torch.library.register_fake("psal::attend", _attend_fake)
torch.library.register_fake("psal::attend_backward", _attend_backward_fake)
torch.library.register_fake("psal::solve_poisson", _solve_poisson_fake)

for _op, _function in (
    (torch.ops.psal.search, Search),
    (torch.ops.psal.score, Score),
    (torch.ops.psal.score_backward, ScoreGradient),
    (torch.ops.psal.attend, Attend),
    (torch.ops.psal.attend_backward, AttendGradient),
):
    _name = _op._qualified_op_name
    torch.library.register_autograd(_name, _function.backward, setup_context=_function.setup_context)
    torch.library.register_vmap(_name, partial(_vmap_over_batch, _op))
