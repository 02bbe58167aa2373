"""attend and aggregate: invariants for any matches."""

from typing import Any

import pytest
import torch
from support.maps import gradients, normal_map, random_mask, random_matches
from support.tolerances import assert_all_close, assert_close, assert_same_bits

import psal
from psal import ops


def gather(name: str, matches: psal.Matches, value: torch.Tensor, **arguments: Any) -> torch.Tensor:
    if name == "aggregate":
        return psal.aggregate(matches, value, patch_size=3, **arguments)
    return psal.attend(matches, value, **arguments)


NAMES = ("attend", "aggregate")


def test_aggregating_over_one_pixel_is_attending() -> None:
    index, score = random_matches(2, 3, (7, 9), (8, 5))
    value = normal_map(2, 4, 8, 5, dtype=torch.float64)
    expected = gradients(lambda s, v: psal.attend(psal.Matches(index, s), v, temperature=0.6), score, value)
    actual = gradients(
        lambda s, v: psal.aggregate(psal.Matches(index, s), v, patch_size=1, temperature=0.6), score, value
    )
    assert_all_close(actual, expected, ("output", "score", "value"))


@pytest.mark.parametrize("name", NAMES)
def test_weights_sum_to_one(name: str) -> None:
    """A constant value stays constant, at the border too, for any grids."""
    matches = random_matches(2, 3, (7, 9), (8, 5))
    value = torch.full((2, 1, 8, 5), 3.0, dtype=torch.float64)
    assert_close(gather(name, matches, value), torch.full((2, 1, 7, 9), 3.0, dtype=torch.float64))


@pytest.mark.parametrize("name", NAMES)
def test_matching_a_pixel_with_itself_returns_the_value(name: str) -> None:
    index = torch.arange(35).reshape(1, 1, 5, 7)
    value = normal_map(1, 3, 5, 7)
    assert_close(gather(name, psal.Matches(index, torch.zeros(1, 1, 5, 7)), value), value)


@pytest.mark.parametrize("name", NAMES)
def test_a_low_temperature_leaves_only_the_best(name: str) -> None:
    index = torch.stack([torch.arange(35), torch.arange(35).flip(0)]).reshape(1, 2, 5, 7)
    score = torch.stack([torch.zeros(35), torch.full((35,), -1.0)]).reshape(1, 2, 5, 7)
    value = normal_map(1, 3, 5, 7)
    assert_close(gather(name, psal.Matches(index, score), value, temperature=1e-6), value)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("offset", [-1e30, 1e30])
def test_huge_scores_do_not_overflow(name: str, offset: float) -> None:
    matches = random_matches(1, 3, (7, 9), (8, 5))
    value = normal_map(1, 4, 8, 5, dtype=torch.float64)
    out = gather(name, psal.Matches(matches.index, torch.full_like(matches.score, offset)), value)
    assert_close(out, gather(name, psal.Matches(matches.index, torch.zeros_like(matches.score)), value))


@pytest.mark.parametrize("name", NAMES)
def test_without_any_active_query_output_and_gradients_are_zero(name: str) -> None:
    index = torch.full((2, 3, 7, 9), -1)
    score = torch.full((2, 3, 7, 9), -torch.inf, dtype=torch.float64)
    value = normal_map(2, 4, 8, 5, dtype=torch.float64)
    out, grad_score, grad_value = gradients(lambda s, v: gather(name, psal.Matches(index, s), v), score, value)
    assert_same_bits(out, torch.zeros_like(out))
    assert_same_bits(grad_score, torch.zeros_like(grad_score))
    assert_same_bits(grad_value, torch.zeros_like(grad_value))


@pytest.mark.parametrize("name", NAMES)
def test_masked_queries_get_zero_gradients(name: str) -> None:
    """Guards against the NaN of a softmax over −∞ alone."""
    index, score = random_matches(2, 3, (7, 9), (8, 5))
    mask = random_mask(2, (7, 9), seed=4)
    index, score = index.where(mask, -1), score.where(mask, -torch.inf)
    value = normal_map(2, 4, 8, 5, dtype=torch.float64)
    _, grad_score, grad_value = gradients(lambda s, v: gather(name, psal.Matches(index, s), v), score, value)
    assert (grad_score[~mask.expand_as(grad_score)] == 0).all()
    assert grad_value.isfinite().all()


def test_attending_gives_zero_for_masked_queries() -> None:
    index, score = random_matches(2, 3, (7, 9), (8, 5))
    mask = random_mask(2, (7, 9), seed=4)
    out = psal.attend(
        psal.Matches(index.where(mask, -1), score.where(mask, -torch.inf)), torch.ones(2, 1, 8, 5, dtype=torch.float64)
    )
    assert_close(out, mask.double())


def test_aggregation_skips_masked_queries() -> None:
    """Only the middle query takes part: its match fills the window around it, and nothing else."""
    index, score = torch.full((1, 1, 5, 5), -1), torch.full((1, 1, 5, 5), -torch.inf)
    index[..., 2, 2], score[..., 2, 2] = 12, -7.0
    value = torch.arange(1.0, 26.0).reshape(1, 1, 5, 5)
    out = psal.aggregate(psal.Matches(index, score), value, patch_size=3)
    window = torch.zeros(5, 5, dtype=torch.bool)
    window[1:4, 1:4] = True
    assert_close(out, value.where(window, 0))


def test_aggregation_is_exact_where_all_scores_are_far_below_those_nearby() -> None:
    """The left half's scores are so low that e^score is 0 relative to the right half's."""
    index, score = random_matches(1, 2, (9, 20), (8, 11), dtype=torch.float32)
    score[..., :10] -= 500
    matches, value = psal.Matches(index, score), normal_map(1, 3, 8, 11)
    out = ops.aggregate(matches, value, (3, 3), 1.0, "native")
    assert_close(out, ops.aggregate(matches, value, (3, 3), 1.0, "reference"))


def test_neighbors_outside_the_grid_drop_out_of_the_aggregation() -> None:
    """All queries match the first key: positions before it are outside the grid."""
    index, score = torch.zeros(1, 1, 3, dtype=torch.int64), torch.zeros(1, 1, 3)
    value = torch.tensor([[[1.0, 10.0, 100.0]]])
    out = psal.aggregate(psal.Matches(index, score), value, patch_size=3)
    assert_close(out, torch.tensor([[[1.0, 5.5, 5.5]]]))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("sq", "sk"), [((3, 4), (9, 2)), ((9, 2), (3, 4)), ((1, 1), (6, 6)), ((6, 6), (1, 1)), ((7,), (3,))], ids=str
)
def test_grids_may_differ(name: str, sq: tuple[int, ...], sk: tuple[int, ...]) -> None:
    matches = random_matches(2, 1, sq, sk)
    out = gather(name, matches, normal_map(2, 3, *sk, dtype=torch.float64))
    assert out.shape == (2, 3, *sq)
    assert out.isfinite().all()


@pytest.mark.parametrize("name", NAMES)
def test_an_empty_batch_gives_an_empty_output(name: str) -> None:
    matches = psal.Matches(torch.empty(0, 2, 4, 5, dtype=torch.int64), torch.empty(0, 2, 4, 5))
    assert gather(name, matches, torch.empty(0, 3, 6, 6)).shape == (0, 3, 4, 5)


def test_patch_attention_returns_matches_if_asked() -> None:
    query, key, value = normal_map(1, 3, 7, 9), normal_map(1, 3, 8, 5), normal_map(1, 2, 8, 5)
    arguments: dict[str, Any] = {"patch_size": 3, "seed": 1}
    out, matches = psal.patch_attention(query, key, value, temperature=9.0, return_matches=True, **arguments)
    expected = psal.patch_match(query, key, **arguments)
    assert_same_bits(matches.index, expected.index)
    assert_same_bits(matches.score, expected.score)
    assert_same_bits(out, psal.attend(expected, value, temperature=9.0))


def test_patch_attention_aggregates_if_asked() -> None:
    query, key, value = normal_map(1, 3, 7, 9), normal_map(1, 3, 8, 5), normal_map(1, 2, 8, 5)
    out = psal.patch_attention(query, key, value, patch_size=3, seed=1, aggregate=True, temperature=9.0)
    matches = psal.patch_match(query, key, patch_size=3, seed=1)
    assert_same_bits(out, psal.aggregate(matches, value, patch_size=3, temperature=9.0))


@pytest.mark.parametrize("name", NAMES)
def test_matches_of_a_larger_key_are_refused(name: str) -> None:
    """Guards against reads beyond the value: matches must index its grid."""
    matches = random_matches(1, 2, (4, 5), (9, 9))
    with pytest.raises(ValueError, match=r"matches\.index must be below the number of keys, 20, .* got"):
        gather(name, matches, normal_map(1, 2, 4, 5))
