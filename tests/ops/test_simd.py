"""The kernels agree on all instruction sets: exactly on integers, else up to rounding."""

from functools import partial

import pytest
import torch
from support.maps import gradients, integer_map, normal_map, random_matches
from support.tolerances import assert_all_close, assert_same_bits

import psal
from psal.ops import native

BEST = native.simd_paths()[-1]


def init_of(name: str) -> str | psal.Matches:
    return random_matches(1, 2, (13, 11), (12, 15)) if name == "matches" else name


def test_every_machine_has_the_baseline() -> None:
    assert native.simd_paths()[0] == "baseline"


@pytest.mark.parametrize("path", native.simd_paths())
def test_a_path_is_selected_and_restored(path: str) -> None:
    before = torch.ops.psal.simd_path()
    with native.simd_path(path):
        assert native.SIMD_PATHS[torch.ops.psal.simd_path()] == path
    assert torch.ops.psal.simd_path() == before


@pytest.mark.parametrize("path", native.simd_paths())
@pytest.mark.parametrize("similarity", ["l2", "dot"])
@pytest.mark.parametrize("init", ["random", "matches"])
def test_matches_of_integers_are_the_same_on_every_path(path: str, similarity: str, init: str) -> None:
    query, key = integer_map(1, 3, 13, 11, seed=1), integer_map(1, 3, 12, 15, seed=2)
    search = partial(psal.patch_match, query, key, patch_size=5, similarity=similarity, init=init_of(init), seed=3)
    with native.simd_path(path):
        actual = search()
    with native.simd_path(BEST):
        expected = search()
    assert_same_bits(actual.index, expected.index)
    assert_same_bits(actual.score, expected.score)


@pytest.mark.parametrize("path", native.simd_paths())
def test_every_pixel_finds_itself_on_every_path(path: str) -> None:
    image = normal_map(1, 3, 19, 23)
    with native.simd_path(path):
        matches = psal.patch_match(image, image, patch_size=5, init="tree", seed=3)
    assert_same_bits(matches.index[0, 0].flatten(), torch.arange(19 * 23))


@pytest.mark.parametrize("path", native.simd_paths())
@pytest.mark.parametrize("similarity", ["l2", "dot", "cosine"])
@pytest.mark.parametrize("aggregate", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_outputs_and_gradients_agree_on_every_path(
    path: str, similarity: str, aggregate: bool, dtype: torch.dtype
) -> None:
    query, key, value = (normal_map(1, 5, 11, 9, dtype=dtype, seed=seed) for seed in range(3))
    attention = partial(
        psal.patch_attention, patch_size=3, aggregate=aggregate, similarity=similarity, init="random", seed=3,
        temperature=1.0 if similarity == "cosine" else 50.0,
    )  # fmt: skip
    with native.simd_path(path):
        actual = gradients(attention, query, key, value)
    with native.simd_path(BEST):
        expected = gradients(attention, query, key, value)
    assert_all_close(actual, expected, ("output", "query", "key", "value"))
