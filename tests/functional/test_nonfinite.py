"""NaN and infinity among scores and values: they reach what they should, and both backends agree on it."""

import math
from itertools import product
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


LINKS = [  # of a query with a key: in the middle, where the rows of two tasks meet, and in corners
    ((9, 10), (5, 7)),
    ((8, 10), (8, 6)),
    ((7, 3), (15, 9)),
    ((0, 0), (18, 12)),
    ((19, 22), (0, 0)),
    ((0, 22), (0, 12)),
]


@pytest.mark.parametrize("poison", [math.nan, math.inf])
@pytest.mark.parametrize("radius", [1, 2, 4])
@pytest.mark.parametrize(("query", "key"), LINKS, ids=str)
def test_what_is_not_finite_reaches_the_window_of_a_link_and_nothing_beside_it(
    query: tuple[int, int], key: tuple[int, int], radius: int, poison: float
) -> None:
    """A single link: pixel query + e of the output is pixel key + e of the value, for e in the window."""
    sq, sk = (20, 23), (19, 13)
    index = torch.full((1, 1, *sq), -1)
    index[0, 0, query[0], query[1]] = key[0] * sk[1] + key[1]
    reach = range(-radius - 1, radius + 2)
    for offset in product(reach, reach):
        at, source = (tuple(c + o for c, o in zip(pixel, offset, strict=True)) for pixel in (query, key))
        has_query, has_key = (
            all(0 <= c < side for c, side in zip(pixel, size, strict=True)) for pixel, size in ((at, sq), (source, sk))
        )
        is_reached = has_query and has_key and max(map(abs, offset)) <= radius
        for poisoned in ("grad_out", "value"):
            value = normal_map(1, 2, *sk).requires_grad_()
            score, grad_out = torch.zeros(1, 1, *sq, requires_grad=True), normal_map(1, 2, *sq, seed=1)
            if poisoned == "value" and has_key:
                value.data[0, 1, source[0], source[1]] = poison
            if poisoned == "grad_out" and has_query:
                grad_out[0, 1, at[0], at[1]] = poison
            out = average("native", 2 * radius + 1, psal.Matches(index, score), value)
            grad_score, grad_value = torch.autograd.grad(out, (score, value), grad_out)
            assert nonfinite(out) == ([(0, 1, *at)] if is_reached and poisoned == "value" else [])
            assert nonfinite(grad_value) == ([(0, 1, *source)] if is_reached and poisoned == "grad_out" else [])
            assert nonfinite(grad_score) == ([(0, 0, *query)] if is_reached else [])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("window", [1, 3])
@pytest.mark.parametrize("lowest", [-math.inf, -1e5])
@pytest.mark.parametrize("poison", [math.nan, math.inf])
def test_values_of_weight_zero_are_not_passed_over(
    poison: float, lowest: float, window: int, dtype: torch.dtype
) -> None:
    """Scores so low that their weight is 0, of which some lead to values that are not finite."""
    index, score, value = problem(dtype)
    score[:, 1:] = lowest
    value[0, :, 3, 4], value[1, 0, :, 2] = poison, poison
    native, reference = (
        nonfinite(average(backend, window, psal.Matches(index, score), value)) for backend in ("native", "reference")
    )
    assert native == reference


def nonfinite(x: Tensor) -> list[tuple[int, ...]]:
    """Coordinates of the elements that are NaN or infinite."""
    return [tuple(at) for at in (~x.isfinite()).nonzero().tolist()]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("window", [1, 5, 9])
@pytest.mark.parametrize("poison", [math.nan, math.inf])
@pytest.mark.parametrize("at", [(0, 0), (8, 10), (0, 5), (4, 4), (8, 1)])
def test_backends_agree_on_gradients_of_the_output_that_are_not_finite(
    at: tuple[int, int], poison: float, window: int, dtype: torch.dtype
) -> None:
    index, score, value = problem(dtype)
    grad_out = normal_map(2, 5, *SQ, dtype=dtype, seed=1)
    grad_out[0, 3, at[0], at[1]] = poison
    score, value = score.requires_grad_(), value.requires_grad_()

    def run(backend: str) -> tuple[Tensor, ...]:
        out = average(backend, window, psal.Matches(index, score), value)
        return torch.autograd.grad(out, (score, value), grad_out)

    grads = run("native")
    assert not any(grad[1].isnan().any() for grad in grads)  # the other batch element
    assert_all_close(grads, run("reference"), ("score", "value"))


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
