"""Properties that hold for any maps, masks and values, NaN and infinity included."""

import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from support.problems import FINITE, INTEGERS, Problem, assert_valid, problems, rescored, search
from support.tolerances import assert_close, assert_not_worse, assert_same_bits

import psal
from psal import ops


@given(problems())
def test_matches_are_valid(problem: Problem) -> None:
    assert_valid(problem, search(problem))


@given(problems())
def test_a_returned_score_is_the_score_of_the_returned_index(problem: Problem) -> None:
    matches = search(problem)
    assert_same_bits(matches.score, rescored(problem, matches.index, "native"))


@given(problems(FINITE))
def test_a_returned_score_is_what_the_reference_gives_for_the_returned_index(problem: Problem) -> None:
    matches = search(problem)
    assert_close(matches.score, rescored(problem, matches.index, "reference"))


@given(problems())
def test_scores_come_best_first_and_nan_last(problem: Problem) -> None:
    score = search(problem).score.nan_to_num(nan=-math.inf, posinf=math.inf, neginf=-math.inf)
    assert (score[:, :-1] >= score[:, 1:]).all()


@given(problems())
def test_the_same_seed_gives_the_same_bits(problem: Problem) -> None:
    first, second = search(problem), search(problem)
    assert_same_bits(first.index, second.index)
    assert_same_bits(first.score, second.score)


@given(problems(FINITE))
def test_another_iteration_never_makes_a_score_worse(problem: Problem) -> None:
    before = search(problem).score
    after = search(problem, iterations=problem.arguments["iterations"] + 1).score
    assert_not_worse(after, before)


@given(problems())
def test_a_warm_start_is_never_worse_than_what_it_starts_from(problem: Problem) -> None:
    """For any values; a NaN counts as −∞."""
    before = search(problem)
    after = search(problem, init=before)
    lost = before.score.nan_to_num(nan=-math.inf, posinf=math.inf, neginf=-math.inf) > after.score.nan_to_num(
        nan=-math.inf, posinf=math.inf, neginf=-math.inf
    )
    assert not lost.any()


@settings(max_examples=25)
@given(problems())
def test_matches_of_the_reference_are_valid_too(problem: Problem) -> None:
    init = problem.arguments["init"]
    assert_valid(problem, search(problem, backend="reference", init="random" if init == "tree" else init))


@settings(max_examples=30)
@given(problems(INTEGERS, ("l2", "dot")))
def test_matches_of_integers_are_those_of_the_reference(problem: Problem) -> None:
    """Sums are exact, so even ties are resolved alike; a warm start is compared before its first sweep."""
    init = problem.arguments["init"]
    arguments: dict[str, Any] = {"init": "random"} if isinstance(init, str) else {"iterations": 0}
    actual, expected = (search(problem, backend=backend, **arguments) for backend in ("native", "reference"))
    assert_same_bits(actual.index, expected.index)
    assert_same_bits(actual.score, expected.score)


@given(problems(FINITE))
def test_attention_is_finite_and_zero_for_masked_queries(problem: Problem) -> None:
    out = psal.patch_attention(problem.query, problem.key, problem.value, **problem.arguments)
    assert out.isfinite().all()
    assert (out[~problem.active[:, :1].expand_as(out)] == 0).all()


@pytest.mark.parametrize("aggregate", [False, True])
@given(problem=problems())
def test_attention_and_its_gradients_run_on_any_values(aggregate: bool, problem: Problem) -> None:
    inputs = [x.detach().requires_grad_() for x in (problem.query, problem.key, problem.value)]
    out = psal.patch_attention(*inputs, aggregate=aggregate, **problem.arguments)
    assert out.shape == (*problem.value.shape[:2], *problem.query.shape[2:])
    grads = torch.autograd.grad(out.sum(), inputs)
    assert [grad.shape for grad in grads] == [x.shape for x in inputs]


@pytest.mark.parametrize("aggregate", [False, True])
@settings(max_examples=25)
@given(problem=problems(FINITE))
def test_attention_agrees_with_the_reference_on_the_same_matches(aggregate: bool, problem: Problem) -> None:
    matches = search(problem)
    matches, value = psal.Matches(matches.index, matches.score.double()), problem.value.double()
    outs = [
        ops.aggregate(matches, value, problem.arguments["patch_size"], 5.0, backend)
        if aggregate
        else ops.attend(matches, value, 5.0, backend)
        for backend in ("native", "reference")
    ]
    assert_close(*outs)


@given(problems(FINITE))
def test_aggregated_values_stay_between_the_smallest_and_the_largest(problem: Problem) -> None:
    out = psal.patch_attention(problem.query, problem.key, problem.value, aggregate=True, **problem.arguments)
    low, high = (
        f(problem.value.flatten(2), 2).reshape(*out.shape[:2], *[1] * (out.ndim - 2)) for f in (torch.amin, torch.amax)
    )
    assert_not_worse(out, low.clamp_max(0).expand_as(out))
    assert_not_worse(high.clamp_min(0).expand_as(out), out)
