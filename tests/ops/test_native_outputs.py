"""Native scores, outputs and gradients against the reference, for the same matches and random cotangents."""

from functools import partial
from typing import Any

import pytest
import torch
from support.maps import gradients, normal_map, random_mask, random_matches
from support.tolerances import assert_all_close, assert_close

import psal
from psal import ops
from psal.options import SIMILARITIES, SearchOptions

BACKENDS = ("native", "reference")
TYPES = (torch.float32, torch.float64)
GRIDS = (((13, 9), (13, 9)), ((9, 7), (5, 11)), ((17,), (23,)), ((3, 5, 4), (4, 3, 5)))


def with_masked_queries(matches: psal.Matches) -> psal.Matches:
    """Mask some queries of the matches."""
    batch, _, *sq = matches.index.shape
    mask = random_mask(batch, sq, seed=8)
    return psal.Matches(matches.index.where(mask, -1), matches.score.where(mask, -torch.inf))


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize(("sq", "sk"), GRIDS, ids=str)
@pytest.mark.parametrize("padding_mode", ["replicate", "reflect", "zeros"])
def test_scores_and_their_gradients_agree(
    dtype: torch.dtype, similarity: str, sq: tuple[int, ...], sk: tuple[int, ...], padding_mode: str
) -> None:
    query, key = normal_map(2, 3, *sq, dtype=dtype, seed=1), normal_map(2, 3, *sk, dtype=dtype, seed=2)
    index = random_matches(2, 3, sq, sk).index
    sides = (3, 5, 1)[: len(sq)]
    searches = (
        SearchOptions(sides, similarity=similarity, padding_mode=padding_mode, backend=backend) for backend in BACKENDS
    )
    actual, expected = (
        gradients(lambda q, k, options=options: ops.score(q, k, index, options), query, key) for options in searches
    )
    assert_all_close(actual, expected, ("score", "query", "key"))


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("neighbors", [1, 2, 3, 7])
@pytest.mark.parametrize(("sq", "sk"), GRIDS, ids=str)
def test_attend_and_its_gradients_agree(
    dtype: torch.dtype, neighbors: int, sq: tuple[int, ...], sk: tuple[int, ...]
) -> None:
    index, score = with_masked_queries(random_matches(2, neighbors, sq, sk, dtype=dtype))
    value = normal_map(2, 5, *sk, dtype=dtype, seed=3)
    active = index >= 0
    actual, expected = (
        gradients(lambda s, v, backend=backend: ops.attend(psal.Matches(index, s), v, 0.7, backend), score, value)
        for backend in BACKENDS
    )
    assert_close(actual[0], expected[0])
    assert_close(actual[1][active], expected[1][active])
    assert_close(actual[2], expected[2])


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("patch_size", [1, 3, 7])
@pytest.mark.parametrize("neighbors", [1, 3])
@pytest.mark.parametrize(("sq", "sk"), GRIDS, ids=str)
def test_aggregate_and_its_gradients_agree(
    dtype: torch.dtype, patch_size: int, neighbors: int, sq: tuple[int, ...], sk: tuple[int, ...]
) -> None:
    index, score = with_masked_queries(random_matches(2, neighbors, sq, sk, dtype=dtype))
    value = normal_map(2, 5, *sk, dtype=dtype, seed=3)
    sides = (patch_size,) * len(sq)
    active = index >= 0
    actual, expected = (
        gradients(
            lambda s, v, backend=backend: ops.aggregate(psal.Matches(index, s), v, sides, 0.7, backend), score, value
        )
        for backend in BACKENDS
    )
    assert_close(actual[0], expected[0])
    assert_close(actual[1][active], expected[1][active])
    assert_close(actual[2], expected[2])


@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize("aggregate", [False, True])
@pytest.mark.parametrize(
    "arguments",
    [
        {"neighbors": 1},
        {"neighbors": 7, "patch_size": (3, 5)},
        {"neighbors": 31, "patch_size": 1},
        {"patch_size": 7, "padding_mode": "reflect"},
        {"patch_size": 7, "padding_mode": "zeros"},
    ],
    ids=str,
)
def test_attention_and_all_gradients_agree(similarity: str, aggregate: bool, arguments: dict[str, Any]) -> None:
    batch, sq, sk = 3, (9, 7), (8, 11)
    query, key, value = (
        normal_map(batch, channels, *size, dtype=torch.float64, seed=seed)
        for seed, (channels, size) in enumerate([(2, sq), (2, sk), (4, sk)])
    )
    attention = partial(
        psal.patch_attention,
        aggregate=aggregate,
        similarity=similarity,
        temperature=1.0 if similarity == "cosine" else 50.0,
        init="random",
        iterations=1,
        seed=3,
        key_mask=random_mask(batch, sk, seed=5),
        query_mask=random_mask(batch, sq, seed=6),
        **{"patch_size": 3, **arguments},
    )
    actual, expected = (gradients(partial(attention, backend=backend), query, key, value) for backend in BACKENDS)
    assert_all_close(actual, expected, ("output", "query", "key", "value"))


@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize("aggregate", [False, True])
def test_attention_agrees_on_an_image_of_63_by_47(similarity: str, aggregate: bool) -> None:
    query, key, value = (normal_map(1, 3, 63, 47, seed=seed) for seed in range(3))
    attention = partial(
        psal.patch_attention,
        patch_size=3,
        aggregate=aggregate,
        similarity=similarity,
        temperature=1.0 if similarity == "cosine" else 50.0,
        init="random",
        iterations=1,
        seed=3,
    )
    actual, expected = (gradients(partial(attention, backend=backend), query, key, value) for backend in BACKENDS)
    assert_all_close(actual, expected, ("output", "query", "key", "value"))
