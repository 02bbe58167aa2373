"""NaN and infinity among scores and values: they reach what they should, and both backends agree on it."""

import math
from typing import Any

import pytest
import torch
from support.maps import gradients, normal_map, random_matches
from support.tolerances import assert_all_close, assert_close
from torch import Tensor

import psal
from psal import ops

SQ, SK = (9, 11), (8, 13)
WHERE = (0, 1, 4, 5)  # a match: batch, neighbor, row, column


def average(backend: str, window: int, matches: psal.Matches, value: Tensor, temperature: float = 1.0) -> Tensor:
    return ops.aggregate(matches, value, (window, window), temperature, backend)


def problem(dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    """Indices with some −1, scores and values."""
    index, score = random_matches(2, 3, SQ, SK, dtype=dtype)
    index[1, :, 2, 3] = index[0, 1, 6, 6] = -1
    return index, score, normal_map(2, 5, *SK, dtype=dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("window", [1, 3])
@pytest.mark.parametrize("poison", [math.nan, -math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("poisoned", ["one score", "all scores of a pixel", "all scores", "value"])
def test_backends_agree_on_what_is_not_finite(poisoned: str, poison: float, window: int, dtype: torch.dtype) -> None:
    index, score, value = problem(dtype)
    batch, _, row, column = WHERE
    if poisoned == "one score":
        score[WHERE] = poison
    elif poisoned == "all scores of a pixel":
        score[batch, :, row, column] = poison
    elif poisoned == "all scores":
        score[batch] = poison
    else:
        value[0, 2, 3, 4] = poison

    def run(backend: str) -> tuple[Tensor, ...]:
        return gradients(lambda s, v: average(backend, window, psal.Matches(index, s), v), score, value)

    assert_all_close(run("native"), run("reference"), ("output", "score", "value"))


@pytest.mark.parametrize("backend", ["native", "reference"])
def test_a_nan_score_reaches_the_pixels_that_use_it_and_no_others(backend: str) -> None:
    index, score, value = problem(torch.float32)
    score[WHERE] = math.nan
    reached = average(backend, 1, psal.Matches(index, score), value).isnan()
    expected = torch.zeros_like(reached)
    expected[0, :, 4, 5] = True
    assert reached.equal(expected)
    wide = average(backend, 3, psal.Matches(index, score), value).isnan()
    around = torch.zeros_like(wide)
    around[0, :, 3:6, 4:7] = True
    assert not (wide & ~around).any()
    assert wide[0, :, 4, 5].all()


@pytest.mark.parametrize("backend", ["native", "reference"])
@pytest.mark.parametrize("window", [1, 3])
def test_a_nan_value_does_not_reach_masked_queries(window: int, backend: str) -> None:
    index = torch.full((1, 2, *SQ), -1)
    value = torch.full((1, 3, *SK), math.nan)
    out = average(backend, window, psal.Matches(index, torch.full(index.shape, -math.inf)), value)
    assert_close(out, torch.zeros(1, 3, *SQ))


@pytest.mark.parametrize("backend", ["native", "reference"])
@pytest.mark.parametrize("window", [1, 3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("temperature", [1e-36, 1e-45, 5e-324])
def test_the_smallest_temperatures_leave_the_best_match(
    temperature: float, dtype: torch.dtype, window: int, backend: str
) -> None:
    index, score, value = problem(dtype)
    score = 1000 * score - 5000
    cold, limit = (average(backend, window, psal.Matches(index, score), value, t) for t in (temperature, 1e-6))
    assert_close(cold, limit)


@pytest.mark.parametrize("backend", ["native", "reference"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_largest_temperatures_give_the_mean(dtype: torch.dtype, backend: str) -> None:
    index, score = random_matches(1, 3, SQ, SK, dtype=dtype)
    value = normal_map(1, 2, *SK, dtype=dtype)
    mean = value.flatten(2)[:, :, index.flatten()].reshape(1, 2, 3, *SQ).mean(2)
    assert_close(average(backend, 1, psal.Matches(index, score), value, 1e300), mean)


@pytest.mark.parametrize("similarity", ["l2", "dot", "cosine"])
def test_a_nan_key_reaches_no_gradient_of_masked_queries(similarity: str) -> None:
    query, key = normal_map(1, 2, *SQ), normal_map(1, 2, *SK)
    key[0, 0, 0, 0] = math.nan
    mask = torch.zeros(1, 1, *SQ, dtype=torch.bool)
    mask[..., 6:, 6:] = True
    key_mask = torch.ones(1, 1, *SK, dtype=torch.bool)
    key_mask[..., :4, :4] = False

    def score(backend: str, q: Tensor, k: Tensor) -> Any:
        found = psal.patch_match(
            q, k, patch_size=3, similarity=similarity, seed=0, query_mask=mask, key_mask=key_mask, backend=backend,
            init="random",
        ).score  # fmt: skip
        return found.where(mask, 0)

    query.requires_grad_(), key.requires_grad_()
    for backend in ("native", "reference"):
        grads = torch.autograd.grad(score(backend, query, key).sum(), (query, key))
        assert all(grad.isfinite().all() for grad in grads)
