"""torch.func: grad, vjp, jacrev and vmap work, forward mode works in the value and is refused elsewhere."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from support.maps import normal_map, random_matches
from support.tolerances import assert_close, assert_same_bits
from torch import Tensor

import psal

SIZES = ((5, 6), (4, 7), (4, 7))
BACKWARD_ONLY = "psal has no forward-mode derivatives of"


def maps() -> tuple[Tensor, Tensor, Tensor]:
    """Query 5 × 6, key and value 4 × 7."""
    query, key, value = (normal_map(2, 2, *size, dtype=torch.float64, seed=i) for i, size in enumerate(SIZES))
    return query, key, value


def attention(aggregate: bool) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    def run(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return psal.patch_attention(query, key, value, patch_size=3, aggregate=aggregate, seed=0)

    return run


@pytest.mark.parametrize("aggregate", [False, True])
def test_grad_and_vjp_are_those_of_backward(aggregate: bool) -> None:
    function, inputs = attention(aggregate), maps()
    out = function(*inputs)
    cotangent = normal_map(*out.shape, dtype=out.dtype, seed=7)
    leaves = [x.clone().requires_grad_() for x in inputs]
    expected = torch.autograd.grad(function(*leaves), leaves, cotangent)
    found = torch.func.grad(lambda *xs: (function(*xs) * cotangent).sum(), argnums=(0, 1, 2))(*inputs)
    through = torch.func.vjp(function, *inputs)[1](cotangent)
    for x, y, wanted in zip(found, through, expected, strict=True):
        assert_same_bits(x, wanted)
        assert_same_bits(y, wanted)


@pytest.mark.parametrize("aggregate", [False, True])
def test_jacrev_has_a_gradient_per_output(aggregate: bool) -> None:
    function, (query, key, value) = attention(aggregate), maps()
    jacobian = torch.func.jacrev(lambda x: function(x, key, value)[0, 1, 2])(query)
    for column in range(6):
        leaf = query.clone().requires_grad_()
        [expected] = torch.autograd.grad(function(leaf, key, value)[0, 1, 2, column], leaf)
        assert_close(jacobian[column], expected)


def test_vmap_searches_each_element() -> None:
    query, key, value = maps()
    several = torch.stack([query, query.flip(3), query.flip(2)])
    every: dict[str, Any] = {
        "patch_size": 3,
        "neighbors": 28,
        "seed": 0,
    }  # all keys, so that nothing depends on random numbers
    found = torch.func.vmap(lambda x: psal.patch_match(x, key, **every).score)(several)
    for x, score in zip(several, found, strict=True):
        assert_close(score, psal.patch_match(x, key, **every).score)
    mapped = torch.func.vmap(lambda v: attention(True)(query, key, v), in_dims=3, out_dims=0)(value[:, :, :, None])
    assert_close(mapped[0], attention(True)(query, key, value))


@pytest.mark.parametrize("name", ["attend", "aggregate"])
def test_forward_mode_is_linear_in_the_value(name: str) -> None:
    matches = random_matches(2, 3, (5, 6), (4, 7))
    _, value, tangent = maps()
    out, found = torch.func.jvp(lambda v: getattr(psal, name)(matches, v), (value,), (tangent,))[:2]
    assert_same_bits(out, getattr(psal, name)(matches, value))
    assert_close(found, getattr(psal, name)(matches, tangent))


@pytest.mark.parametrize("name", ["attend", "aggregate"])
def test_forward_mode_is_refused_for_scores(name: str) -> None:
    index, score = random_matches(2, 3, (5, 6), (4, 7))
    value = maps()[1]
    with pytest.raises(RuntimeError, match=BACKWARD_ONLY):
        torch.func.jvp(lambda s: getattr(psal, name)(psal.Matches(index, s), value), (score,), (score,))


@pytest.mark.parametrize("function", [psal.patch_match, psal.exact_match])
def test_forward_mode_is_refused_for_searches(function: Callable[..., psal.Matches]) -> None:
    query, key, _ = maps()
    with pytest.raises(RuntimeError, match=BACKWARD_ONLY):
        torch.func.jvp(lambda q: function(q, key, patch_size=3).score, (query,), (query,))
