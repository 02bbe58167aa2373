"""Types of inputs and outputs; half types are computed in float32 and returned in their own type."""

from typing import Any

import pytest
import torch
from support.maps import gradients, normal_map, random_matches
from support.tolerances import assert_close, assert_same_bits
from torch import Tensor

import psal

TYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
HALF_TYPES = (torch.bfloat16, torch.float16)


def attention(query: Tensor, key: Tensor, value: Tensor, **arguments: Any) -> Any:
    return psal.patch_attention(query, key, value, patch_size=3, temperature=20.0, seed=1, **arguments)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("aggregate", [False, True])
@pytest.mark.parametrize("backend", ["native", "reference"])
def test_outputs_and_gradients_have_the_type_of_the_inputs(dtype: torch.dtype, aggregate: bool, backend: str) -> None:
    inputs = [normal_map(1, 2, 6, 5, dtype=dtype, seed=seed).requires_grad_() for seed in range(3)]
    out, matches = attention(*inputs, aggregate=aggregate, return_matches=True, backend=backend)
    grads = torch.autograd.grad(out.sum(), inputs)
    assert [x.dtype for x in (out, matches.score, *grads)] == [dtype] * 5
    assert matches.index.dtype == torch.int64


@pytest.mark.parametrize("dtype", HALF_TYPES, ids=str)
@pytest.mark.parametrize("aggregate", [False, True])
@pytest.mark.parametrize("similarity", ["l2", "dot", "cosine"])
def test_half_types_are_computed_in_float32(dtype: torch.dtype, aggregate: bool, similarity: str) -> None:
    """The same bits as in float32, rounded once at the end."""
    inputs = [normal_map(2, 3, 9, 8, dtype=dtype, seed=seed) for seed in range(3)]
    cotangent = normal_map(2, 3, 9, 8, dtype=dtype, seed=4)

    def run(*leaves: Tensor) -> tuple[Tensor, ...]:
        out, matches = attention(*leaves, aggregate=aggregate, similarity=similarity, return_matches=True)
        return matches.index, matches.score, out, *torch.autograd.grad(out, leaves, cotangent.to(out.dtype))

    actual = run(*(x.clone().requires_grad_() for x in inputs))
    expected = run(*(x.float().requires_grad_() for x in inputs))
    assert_same_bits(actual[0], expected[0])
    for a, e in zip(actual[1:], expected[1:], strict=True):
        assert_same_bits(a.detach(), e.detach().to(dtype))


@pytest.mark.parametrize("dtype", HALF_TYPES, ids=str)
@pytest.mark.parametrize("similarity", ["l2", "dot", "cosine"])
def test_half_types_agree_between_backends(dtype: torch.dtype, similarity: str) -> None:
    inputs = [normal_map(1, 3, 9, 8, dtype=dtype, seed=seed) for seed in range(3)]
    actual, expected = (
        gradients(
            lambda q, k, v, backend=backend: attention(q, k, v, similarity=similarity, init="random", backend=backend),
            *inputs,
        )
        for backend in ("native", "reference")
    )
    for a, e in zip(actual, expected, strict=True):
        assert_close(a, e)


def test_exact_match_returns_its_own_type() -> None:
    image = normal_map(1, 2, 6, 5, dtype=torch.bfloat16)
    matches = psal.exact_match(image, image, patch_size=3)
    assert matches.score.dtype == torch.bfloat16
    assert_same_bits(matches.index[0, 0].flatten(), torch.arange(30))


def test_the_score_has_the_more_precise_type_of_query_and_key() -> None:
    query, key = normal_map(1, 2, 6, 5, dtype=torch.bfloat16), normal_map(1, 2, 6, 5, dtype=torch.float64, seed=1)
    matches = psal.patch_match(query, key, patch_size=3, seed=0)
    expected = psal.patch_match(query.double(), key, patch_size=3, seed=0)
    assert_same_bits(matches.index, expected.index)
    assert_same_bits(matches.score, expected.score)


@pytest.mark.parametrize("gather", [psal.attend, psal.aggregate])
@pytest.mark.parametrize("value_type", TYPES, ids=str)
@pytest.mark.parametrize("score_type", TYPES, ids=str)
def test_the_output_has_the_type_of_the_value(gather: Any, value_type: torch.dtype, score_type: torch.dtype) -> None:
    matches = random_matches(1, 2, (5, 4), (5, 4), dtype=score_type)
    value = normal_map(1, 2, 5, 4, dtype=value_type)
    expected = gather(psal.Matches(matches.index, matches.score.double()), value.double())
    out = gather(matches, value)
    assert out.dtype == value_type
    coarser = max((value_type, torch.float32), key=lambda dtype: torch.finfo(dtype).eps)
    assert_close(out.to(coarser), expected.to(coarser))


def test_float64_is_searched_in_float64() -> None:
    """Two keys that are equal in float32."""
    key = torch.tensor([[[1.0 + 1e-12, 1.0, 5.0, 9.0]]], dtype=torch.float64)
    query = torch.ones(1, 1, 4, dtype=torch.float64)
    for init in ("random", "tree"):
        matches = psal.patch_match(query, key, patch_size=1, neighbors=2, init=init, seed=0)
        assert (matches.index[0, 0] == 1).all()


def test_scores_beyond_the_range_of_float16_stay_finite() -> None:
    query, key = (normal_map(1, 8, 9, 8, seed=seed, dtype=torch.float16) * 64 for seed in (1, 2))
    matches = psal.patch_match(query, key, seed=0)
    assert matches.score.isfinite().all()
    assert psal.attend(matches, key).count_nonzero() == key.numel()


def test_the_default_device_does_not_move_the_seed() -> None:
    """Guards against a seed tensor on another device than the CPU, which the kernel would misread."""
    image = normal_map(1, 2, 9, 8)
    expected = psal.patch_match(image, image, seed=3)
    before = torch.get_default_device()
    torch.set_default_device("meta")
    try:
        found = psal.patch_match(image, image, seed=3)
    finally:
        torch.set_default_device(before)
    assert found.index.equal(expected.index)


@pytest.mark.parametrize(
    ("dtype", "pixel"),
    [(torch.float16, [256.0, 8.0]), (torch.bfloat16, [1.8374e19, 1.4861e18])],  # float32 holds the score, they do not
)
def test_a_finite_score_stays_finite_in_half_types(dtype: torch.dtype, pixel: list[float]) -> None:
    query = torch.tensor(pixel, dtype=dtype).reshape(1, 2, 1, 1)
    found = psal.patch_match(query, torch.zeros_like(query), patch_size=1, neighbors=1)
    assert found.score.item() == -torch.finfo(dtype).max
