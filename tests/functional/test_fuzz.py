"""Any call keeps its promises. ``make fuzz`` draws 50,000 problems for 150,000 calls, ``make test`` a few."""

import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support.maps import gradients
from support.problems import FINITE, Problem, assert_valid, problems, rescored, search
from support.tolerances import assert_all_close, assert_same_bits
from torch import Tensor

import psal
from psal import ops
from psal.options import SearchOptions

HUGE = st.sampled_from([2**31 + 1, 2**32 + 1, 2**62 + 1, 2**63 - 1, 2**64 + 1, 2**80 + 1])
WRONG: dict[str, st.SearchStrategy[Any]] = {
    "patch_size": st.one_of(
        HUGE, st.integers(-(2**70), 0), st.sampled_from([2, 3.0, None, "7", (3,) * 5, (), math.nan])
    ),
    "neighbors": st.one_of(HUGE, st.integers(-(2**70), 0), st.sampled_from([2.0, None, "3", math.nan])),
    "iterations": st.one_of(st.sampled_from([2**31, 2**70, 1.5, "1", math.nan]), st.integers(-(2**70), -1)),
    "seed": st.sampled_from([2**63, -(2**63) - 1, 2**70, 1.0, "1"]),
    "similarity": st.sampled_from(["l1", 2, None, b"l2"]),
    "padding_mode": st.sampled_from(["circular", None, 0]),
    "init": st.sampled_from(["trees", 0, (1, 2)]),
    "key_mask": st.sampled_from([True, torch.ones(1), torch.ones(1, dtype=torch.bool)]),
    "query_mask": st.sampled_from([True, torch.ones(1), torch.ones(1, dtype=torch.bool)]),
}
TEMPERATURES = (5e-324, 1e-300, 1e-39, 1e-6, 0.1, 1.0, 30.0, 1e6, 1e300)
THREADS = (1, 2, 3)


@given(problems())
def test_a_search_is_valid_sorted_and_has_the_same_bits_on_any_thread_count(problem: Problem) -> None:
    first = search(problem)
    assert_valid(problem, first)
    assert_same_bits(first.score, rescored(problem, first.index, "native"))
    rank = first.score.nan_to_num(nan=-math.inf, posinf=math.inf, neginf=-math.inf)
    assert (rank[:, :-1] >= rank[:, 1:]).all()
    before = torch.get_num_threads()
    try:
        for threads in THREADS:
            torch.set_num_threads(threads)
            again = search(problem)
            assert_same_bits(again.index, first.index)
            assert_same_bits(again.score, first.score)
    finally:
        torch.set_num_threads(before)


@given(problem=problems(FINITE), name=st.sampled_from(list(WRONG)), data=st.data())
def test_a_wrong_argument_is_refused_by_name(problem: Problem, name: str, data: st.DataObject) -> None:
    value = data.draw(WRONG[name])
    with pytest.raises((ValueError, TypeError), match=name):
        search(problem, **{name: value})
    assert_valid(problem, search(problem))


@given(
    problem=problems(("normal", "constant", "steps")),
    temperature=st.sampled_from(TEMPERATURES),
    aggregate=st.booleans(),
    data=st.data(),
)
def test_attention_agrees_with_the_reference_wherever_nan_and_infinity_are(
    problem: Problem, temperature: float, aggregate: bool, data: st.DataObject
) -> None:
    index, score = search(problem)
    score, value = (
        x.to(torch.float64, memory_format=torch.contiguous_format, copy=True) for x in (score, problem.value)
    )
    for x in (score, value):
        if data.draw(st.booleans()):
            flat = x.view(-1)
            for at in data.draw(st.lists(st.integers(0, len(flat) - 1), max_size=4)):
                flat[at] = data.draw(st.sampled_from([math.nan, math.inf, -math.inf]))
    sides = problem.arguments["patch_size"] if aggregate else (1,) * (value.ndim - 2)

    def run(backend: str) -> tuple[Tensor, ...]:
        return gradients(
            lambda s, v: ops.aggregate(psal.Matches(index, s), v, sides, temperature, backend), score, value
        )

    native, reference = run("native"), run("reference")
    may_underflow = not (score.amax() - score.amin()) / temperature < 700  # then 0 · ∞ is NaN, and ε · ∞ is not
    outputs = [infinity_to_nan(found[0]) if may_underflow else found[0] for found in (native, reference)]
    assert_all_close(outputs[:1], outputs[1:], ["output"])
    if 0.1 <= temperature <= 1e6:  # outside, gradients depend on rounding, or are denormal
        terms = torch.tensor([1 / temperature])  # the gradient of a score is a difference of terms of this size
        scores, values = ([infinity_to_nan(found[i]) for found in (native, reference)] for i in (1, 2))  # ∞ − ∞ is NaN
        assert_all_close([scores[0] + terms], [scores[1] + terms], ["score"])
        assert_all_close(values[:1], values[1:], ["value"])


def infinity_to_nan(x: Tensor) -> Tensor:
    return x.masked_fill(x.isinf(), math.nan)


@given(problems(FINITE))
def test_exact_matches_are_the_best_of_a_table_of_all_scores(problem: Problem) -> None:
    names = ("patch_size", "neighbors", "similarity", "padding_mode")
    chosen = {name: problem.arguments[name] for name in names}
    masks = {name: problem.arguments[name] for name in ("key_mask", "query_mask")}
    query, key = problem.query.float(), problem.key.float()
    found = psal.exact_match(query, key, **chosen, **masks)
    assert_valid(problem, found)
    keys = math.prod(key.shape[2:])
    every = torch.arange(keys).reshape(1, -1, *[1] * (key.ndim - 2)).expand(len(query), keys, *query.shape[2:])
    table = ops.score(query, key, every.contiguous(), SearchOptions(**chosen))
    if masks["key_mask"] is not None:
        table = table.masked_fill(
            ~masks["key_mask"].flatten(2).mT.reshape(len(key), keys, *[1] * (key.ndim - 2)), -math.inf
        )
    best = table.topk(chosen["neighbors"], dim=1).values.masked_fill(~problem.active, -math.inf)
    assert_all_close([found.score], [best], ["score"])
