"""The native search against the reference: same schedule and random numbers, so the same matches."""

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from support.maps import integer_map, normal_map, random_mask, random_matches
from support.tolerances import assert_close, assert_same_bits

import psal
from psal.options import SIMILARITIES


def exact_pair(
    sq: Sequence[int], sk: Sequence[int], *, batch: int = 1, channels: int = 2, similarity: str = "l2"
) -> tuple[torch.Tensor, torch.Tensor]:
    """Query and key that both backends rank alike: integers, or float64 for "cosine", which takes a root."""
    if similarity == "cosine":
        return (
            normal_map(batch, channels, *sq, dtype=torch.float64, seed=1),
            normal_map(batch, channels, *sk, dtype=torch.float64, seed=2),
        )
    return integer_map(batch, channels, *sq, seed=1), integer_map(batch, channels, *sk, seed=2)


def assert_backends_agree(query: torch.Tensor, key: torch.Tensor, **arguments: Any) -> None:
    arguments = {"seed": 5, "init": "random", "iterations": 2, "patch_size": 3, **arguments}
    expected = psal.patch_match(query, key, backend="reference", **arguments)
    actual = psal.patch_match(query, key, backend="native", **arguments)
    assert_same_bits(actual.index, expected.index)
    if query.dtype == torch.float64:
        assert_close(actual.score, expected.score)
    else:
        assert_same_bits(actual.score, expected.score)


@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize("neighbors", [1, 2, 3, 7, 31, 91])
def test_matches_agree_for_any_number_of_neighbors(neighbors: int, similarity: str) -> None:
    query, key = exact_pair((11, 9), (7, 13), similarity=similarity)
    assert_backends_agree(query, key, neighbors=neighbors, similarity=similarity)


@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize("patch_size", [1, 3, 7, (3, 5), (5, 1)])
def test_matches_agree_for_any_patch(patch_size: int | tuple[int, int], similarity: str) -> None:
    query, key = exact_pair((11, 9), (7, 13), similarity=similarity)
    assert_backends_agree(query, key, patch_size=patch_size, similarity=similarity)


@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_matches_agree_on_an_image_of_63_by_47(similarity: str) -> None:
    query, key = exact_pair((63, 47), (63, 47), channels=3, similarity=similarity)
    assert_backends_agree(query, key, patch_size=7, iterations=1, similarity=similarity)


@pytest.mark.parametrize(
    ("sq", "sk"),
    [
        ((1, 1), (1, 4)),
        ((1, 17), (17, 1)),
        ((3, 5), (23, 21)),
        ((3, 1601), (2, 1303)),
        ((4001,), (3989,)),
        ((23, 21), (3, 5)),
        ((7,), (7,)),
        ((37,), (19,)),
        ((1,), (33,)),
        ((5, 7, 3), (5, 7, 3)),
        ((3, 4, 9), (6, 5, 2)),
        ((1, 1, 5), (9, 1, 1)),
    ],
    ids=str,
)
@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_matches_agree_on_any_grids(sq: tuple[int, ...], sk: tuple[int, ...], similarity: str) -> None:
    """Tiny grids, and rows long enough to be split."""
    query, key = exact_pair(sq, sk, similarity=similarity)
    assert_backends_agree(query, key, similarity=similarity)


@pytest.mark.parametrize("channels", [1, 3, 5, 8, 16, 17])
def test_matches_agree_for_any_number_of_channels(channels: int) -> None:
    """Guards against vector code that skips the remainder after the last full vector."""
    query, key = exact_pair((9, 11), (10, 7), channels=channels)
    assert_backends_agree(query, key)


@pytest.mark.parametrize("padding_mode", ["replicate", "reflect", "zeros"])
@pytest.mark.parametrize("size", [(9, 11), (2, 3), (1, 5)], ids=str)
@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_matches_agree_for_any_padding(size: tuple[int, int], padding_mode: str, similarity: str) -> None:
    query, key = exact_pair(size, size, similarity=similarity)
    assert_backends_agree(query, key, patch_size=7, padding_mode=padding_mode, similarity=similarity)


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("masked", ["key", "query", "both"])
@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_matches_agree_under_masks(batch: int, masked: str, similarity: str) -> None:
    query, key = exact_pair((9, 7), (8, 11), batch=batch, similarity=similarity)
    key_mask = random_mask(batch, (8, 11), fraction=0.5, seed=3) if masked != "query" else None
    query_mask = random_mask(batch, (9, 7), seed=4) if masked != "key" else None
    assert_backends_agree(query, key, similarity=similarity, key_mask=key_mask, query_mask=query_mask)


def test_matches_agree_when_a_mask_leaves_as_many_keys_as_neighbors() -> None:
    query, key = exact_pair((5, 6), (4, 5), batch=2)
    key_mask = torch.zeros(2, 1, 4, 5, dtype=torch.bool)
    key_mask[0, 0, 1, 1:4] = True
    key_mask[1, 0, 1:, 0] = True
    assert_backends_agree(query, key, neighbors=3, key_mask=key_mask)


@pytest.mark.parametrize("seed", [0, -1, 2**31, 2**40 + 7, -(2**63), 2**63 - 1])
def test_matches_agree_for_any_seed(seed: int) -> None:
    query, key = exact_pair((9, 7), (8, 11))
    assert_backends_agree(query, key, seed=seed)


@pytest.mark.parametrize("iterations", [0, 1, 6])
def test_matches_agree_after_any_number_of_iterations(iterations: int) -> None:
    query, key = exact_pair((9, 17), (18, 11))
    assert_backends_agree(query, key, iterations=iterations)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16], ids=str)
def test_matches_agree_in_every_type(dtype: torch.dtype) -> None:
    query, key = (x.to(dtype) for x in exact_pair((9, 7), (8, 11)))
    assert_backends_agree(query, key)


def test_ties_are_resolved_alike() -> None:
    """On constant images all scores tie, so the order of candidates decides."""
    assert_backends_agree(torch.ones(1, 2, 9, 8), torch.ones(1, 2, 7, 10), neighbors=5)


@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_scores_of_real_numbers_agree_up_to_rounding(similarity: str) -> None:
    query, key = normal_map(2, 3, 21, 17, seed=1), normal_map(2, 3, 19, 23, seed=2)
    arguments: dict[str, Any] = {"patch_size": 5, "similarity": similarity, "init": "random", "seed": 2}
    expected = psal.patch_match(query, key, backend="reference", **arguments)
    actual = psal.patch_match(query, key, backend="native", **arguments)
    assert_close(actual.score, expected.score)


@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize("given", [1, 3, 5])
def test_a_warm_start_without_iterations_is_a_random_one_with_the_given_matches(given: int, similarity: str) -> None:
    query, key = exact_pair((9, 7), (8, 11), batch=2, similarity=similarity)
    init = random_matches(2, given, (9, 7), (8, 11), seed=3)
    assert_backends_agree(query, key, init=init, iterations=0, similarity=similarity)


def test_a_warm_start_skips_invalid_indices() -> None:
    query, key = exact_pair((9, 7), (8, 11), batch=2)
    init = random_matches(2, 4, (9, 7), (8, 11), seed=3)
    init.index[:, 0] = -1
    init.index[:, 1] = 8 * 11
    init.index[:, 2, ::2] = 2**40
    init.index[:, 3, ::2] = -(2**63)
    key_mask = random_mask(2, (8, 11), fraction=0.5, seed=3)
    query_mask = random_mask(2, (9, 7), seed=4)
    assert_backends_agree(query, key, init=init, iterations=0, key_mask=key_mask, query_mask=query_mask)
