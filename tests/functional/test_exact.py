"""exact_match against the matrix of all scores."""

import math

import pytest
import torch
from support.maps import dense_patches, dense_scores, gradients, normal_map, random_mask
from support.tolerances import assert_all_close, assert_close, assert_same_bits
from torch import Tensor

import psal
from psal import ops
from psal.ops import exact
from psal.options import SearchOptions

SIMILARITIES = ("l2", "dot", "cosine")


def pair() -> tuple[Tensor, Tensor]:
    return normal_map(2, 3, 6, 5, dtype=torch.float64, seed=0), normal_map(2, 3, 4, 7, dtype=torch.float64, seed=1)


def full_attention(query: Tensor, key: Tensor, value: Tensor, similarity: str) -> Tensor:
    """Softmax over all keys, with patches of 3 and a temperature of 20."""
    weight = (dense_scores(query, key, 3, similarity) / 20).softmax(-1)
    return (weight @ value.flatten(2).mT).mT.reshape(*value.shape[:2], *query.shape[2:])


@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize("neighbors", [1, 3, 28])
@pytest.mark.parametrize("masked", [False, True])
def test_exact_matches_are_the_best_of_all_pairs(similarity: str, neighbors: int, masked: bool) -> None:
    query, key = pair()
    neighbors = min(neighbors, 10 if masked else 28)
    key_mask = random_mask(2, (4, 7), seed=3) if masked else torch.ones(2, 1, 4, 7, dtype=torch.bool)
    query_mask = random_mask(2, (6, 5), seed=4) if masked else torch.ones(2, 1, 6, 5, dtype=torch.bool)
    scores = dense_scores(query, key, 3, similarity).mT.masked_fill(~key_mask.flatten(2).mT, -math.inf)
    expected = scores.topk(neighbors, dim=1)
    matches = psal.exact_match(
        query, key, patch_size=3, neighbors=neighbors, similarity=similarity,
        key_mask=key_mask if masked else None, query_mask=query_mask if masked else None,
    )  # fmt: skip
    active = query_mask.flatten(2).expand(-1, neighbors, -1)
    assert_same_bits(matches.index.flatten(2), expected.indices.where(active, -1))
    assert_close(matches.score.flatten(2), expected.values.where(active, -math.inf))


def test_chunks_do_not_change_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    query, key = pair()
    whole = psal.exact_match(query, key, patch_size=3)
    monkeypatch.setattr(exact, "CHUNK_ELEMENTS", 100)
    assert_same_bits(psal.exact_match(query, key, patch_size=3).index, whole.index)


@pytest.mark.parametrize("size", [(9,), (3, 4, 5)], ids=str)
def test_exact_matches_exist_in_one_and_three_dimensions(size: tuple[int, ...]) -> None:
    image = normal_map(1, 2, *size)
    matches = psal.exact_match(image, image, patch_size=3, neighbors=2)
    assert_same_bits(matches.index[0, 0].flatten(), torch.arange(math.prod(size)))


def test_a_callable_similarity_equals_the_named_one() -> None:
    query, key = pair()
    named = psal.exact_match(query, key, patch_size=3, similarity="dot")
    called = psal.exact_match(query, key, patch_size=3, similarity=lambda q, k: (q * k).sum(-1))
    assert_same_bits(called.index, named.index)
    assert_close(called.score, named.score)


@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_attending_to_all_keys_is_full_attention(similarity: str) -> None:
    query, key = pair()
    value = normal_map(2, 4, 4, 7, dtype=torch.float64, seed=5)

    def of_all_keys(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        matches = psal.exact_match(q, k, patch_size=3, neighbors=28, similarity=similarity)
        return psal.attend(matches, v, temperature=20)

    expected = gradients(lambda q, k, v: full_attention(q, k, v, similarity), query, key, value)
    actual = gradients(of_all_keys, query, key, value)
    assert_all_close(actual, expected, ("output", "query", "key", "value"))


@pytest.mark.parametrize("init", ["random", "tree"])
def test_patch_attention_to_all_keys_is_full_attention(init: str) -> None:
    query, key = pair()
    value = normal_map(2, 4, 4, 7, dtype=torch.float64, seed=5)
    actual = psal.patch_attention(
        query, key, value, patch_size=3, neighbors=28, iterations=0, init=init, temperature=20
    )
    assert_close(actual, full_attention(query, key, value, "l2"))


@pytest.mark.parametrize("poison", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("similarity", ["l2", "cosine"])
def test_a_non_finite_key_is_never_a_best_match(poison: float, similarity: str) -> None:
    """Guards against topk and sort, which rank NaN above all numbers."""
    query, key = pair()
    key[:, :, 2, 3] = poison
    matches = psal.exact_match(query, key, patch_size=1, neighbors=3, similarity=similarity)
    assert not (matches.index == 2 * 7 + 3).any()


def test_an_offset_does_not_hide_the_best_keys() -> None:
    """Guards against cancellation in products of patches with a large mean."""
    x = normal_map(1, 2, 13, 11) + 1000
    assert psal.exact_match(x, x, patch_size=3, neighbors=1).index.flatten().equal(torch.arange(143))


def test_keys_with_a_nan_score_come_last() -> None:
    query, key = normal_map(1, 2, 5, 6, seed=1), torch.full((1, 2, 2, 2), math.nan)
    key[..., 1, 1] = 0
    matches = psal.exact_match(query, key, patch_size=1, neighbors=3)
    assert matches.index[:, 0].eq(3).all()
    assert matches.score[:, 0].isfinite().all()


def test_infinite_queries_do_not_hide_the_best_scores() -> None:
    query, key = normal_map(1, 1, 1, 3, seed=1), normal_map(1, 1, 2, 3, seed=2)
    query[..., 0] = math.inf
    exact = psal.exact_match(query, key, patch_size=1, neighbors=2, similarity="dot")
    best = psal.patch_match(query, key, patch_size=1, neighbors=2, similarity="dot", init="random", iterations=9)
    assert exact.score[..., 0, 0].equal(best.score[..., 0, 0])


@pytest.mark.parametrize("padding_mode", ["zeros", "reflect", "replicate"])
@pytest.mark.parametrize("similarity", ["l2", "dot", "cosine"])
def test_padding_is_that_of_the_scores(padding_mode: str, similarity: str) -> None:
    """An all-pairs table of scores, which pads as every score does, gives the truth."""
    query, key = torch.rand(1, 3, 9, 11) + 2, torch.rand(1, 3, 8, 7) + 2
    every = torch.arange(56).reshape(1, 56, 1, 1).expand(1, 56, 9, 11)
    options = SearchOptions(7, similarity=similarity, padding_mode=padding_mode)
    table = ops.score(query, key, every, options)
    found = psal.exact_match(query, key, similarity=similarity, padding_mode=padding_mode)
    assert_close(found.score, table.topk(3, dim=1).values)


def test_a_mask_may_leave_no_query() -> None:
    query, key = torch.rand(1, 2, 9, 11), torch.rand(1, 2, 20, 20)
    found = psal.exact_match(query, key, query_mask=torch.zeros(1, 1, 9, 11, dtype=torch.bool))
    assert (found.index == -1).all()


def float64_costs(query: torch.Tensor, key: torch.Tensor, patch_size: int, neighbors: int) -> torch.Tensor:
    """Costs ``(k, N)`` of the best keys, by differences in float64."""
    q, k = (dense_patches(x.double(), patch_size)[0] for x in (query, key))
    return torch.cat(
        [(row[None] - k).square().sum(-1).topk(neighbors, largest=False).values[:, None] for row in q], dim=1
    )


@pytest.mark.parametrize(
    ("contrast", "noise", "offset"), [(1.0, 1e-4, 0.0), (0.0, 1e-3, 1000.0), (1.0, 0.0, 0.0), (1.0, 1e-4, 100.0)]
)
def test_fine_texture_on_a_large_range_is_matched_exactly(contrast: float, noise: float, offset: float) -> None:
    plateaus = (torch.rand(1, 1, 5, 6) > 0.5).float().repeat_interleave(5, 2).repeat_interleave(5, 3)
    query = contrast * plateaus + noise * torch.randn(1, 3, 25, 30) + offset
    key = contrast * plateaus.flip(3) + noise * torch.randn(1, 3, 25, 30) + offset
    found = -psal.exact_match(query, key).score.flatten(2)[0].double()
    expected = float64_costs(query, key, 7, 3)
    assert_close(found.float(), expected.float())
    assert found.sum() <= expected.sum() * (1 + 1e-6)
