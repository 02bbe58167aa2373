"""The Triton search against the reference: same schedule, random numbers and rule for ties, so the same matches."""

import math
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from support.interpreter import TritonKernels
from support.maps import integer_map, normal_map, random_mask, random_matches
from support.tolerances import assert_close, assert_same_bits
from torch import Tensor

import psal
from psal.ops import morton
from psal.ops.native import INIT_KINDS
from psal.options import SIMILARITIES


def exact_pair(
    sq: Sequence[int], sk: Sequence[int], *, batch: int = 1, channels: int = 2, similarity: str = "l2"
) -> tuple[Tensor, Tensor]:
    """Query and key that both backends rank alike: integers, or float64 for "cosine", which takes a root."""
    if similarity == "cosine":
        return (
            normal_map(batch, channels, *sq, dtype=torch.float64, seed=1),
            normal_map(batch, channels, *sk, dtype=torch.float64, seed=2),
        )
    return integer_map(batch, channels, *sq, seed=1), integer_map(batch, channels, *sk, seed=2)


def matches_of(query: Tensor, key: Tensor, **arguments: Any) -> tuple[psal.Matches, psal.Matches]:
    """Matches of the Triton kernels and of the reference."""
    arguments = {"seed": -7 * 2**40, "init": "random", "iterations": 1, "patch_size": 3, "neighbors": 2, **arguments}
    with TritonKernels():
        actual = psal.patch_match(query, key, backend="native", **arguments)
    return actual, psal.patch_match(query, key, backend="reference", **arguments)


def assert_agree(query: Tensor, key: Tensor, **arguments: Any) -> None:
    actual, expected = matches_of(query, key, **arguments)
    assert_same_bits(actual.index, expected.index)
    if query.dtype == torch.float64:
        assert_close(actual.score, expected.score)
    else:
        assert_same_bits(actual.score, expected.score)


@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize("init", ["random", "tree"])
def test_matches_agree_with_masks_in_a_batch(similarity: str, init: str) -> None:
    query, key = exact_pair((9, 7), (6, 11), batch=2, similarity=similarity)
    masks = {"key_mask": random_mask(2, (6, 11), seed=3), "query_mask": random_mask(2, (9, 7), seed=4)}
    assert_agree(query, key, similarity=similarity, init=init, iterations=0 if init == "tree" else 1, **masks)


@pytest.mark.parametrize("neighbors", [1, 3, 32])
def test_matches_agree_for_any_number_of_neighbors(neighbors: int) -> None:
    assert_agree(*exact_pair((6, 5), (7, 6)), neighbors=neighbors)


@pytest.mark.parametrize(
    ("sq", "sk", "patch_size"),
    [((19,), (13,), 5), ((3, 5, 4), (4, 3, 5), (1, 3, 3)), ((17, 18), (5, 7), (3, 1)), ((1, 1), (3, 1), 7)],
    ids=str,
)
def test_matches_agree_on_any_grid(sq: tuple[int, ...], sk: tuple[int, ...], patch_size: Any) -> None:
    assert_agree(*exact_pair(sq, sk), patch_size=patch_size)


@pytest.mark.parametrize("padding_mode", ["reflect", "zeros"])
def test_matches_agree_for_any_padding(padding_mode: str) -> None:
    assert_agree(*exact_pair((6, 5), (4, 7)), padding_mode=padding_mode, patch_size=5)


def test_matches_agree_for_several_blocks_of_channels() -> None:
    assert_agree(*exact_pair((6, 5), (4, 7), channels=35))


def test_matches_agree_with_the_default_patch() -> None:
    assert_agree(*exact_pair((9, 11), (8, 10), channels=3), patch_size=7, neighbors=3)


def test_a_warm_start_skips_what_is_no_valid_key() -> None:
    query, key = exact_pair((9, 7), (6, 11))
    index = random_matches(1, 2, (9, 7), (6, 11)).index - 5
    index[:, 0, 2] = 2**40
    warm = psal.Matches(index, torch.zeros(index.shape))
    assert_agree(query, key, init=warm, key_mask=random_mask(1, (6, 11), seed=3))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_half_types_are_compared_in_float32(dtype: torch.dtype) -> None:
    """Integers have no rounding errors in a half type, but their sums would."""
    query, key = exact_pair((9, 7), (6, 11), channels=5)
    seed = torch.tensor(3)
    rest = [5, 5], 2, 1, 0, INIT_KINDS.index("random"), 0
    with TritonKernels():
        index, score = torch.ops.psal.search(query.to(dtype), key.to(dtype), None, None, None, seed, *rest)
    expected = psal.patch_match(
        query, key, patch_size=5, neighbors=2, iterations=1, init="random", seed=3, backend="reference"
    )
    assert_same_bits(index, expected.index)
    assert_same_bits(score, expected.score)


@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_scores_of_floats_are_as_good_as_the_reference(similarity: str) -> None:
    query, key = normal_map(1, 3, 9, 7, seed=1), normal_map(1, 3, 6, 11, seed=2)
    actual, expected = matches_of(query, key, similarity=similarity)
    same = actual.index == expected.index
    assert same.double().mean() > 0.98, "more than ties differ"
    assert_close(actual.score.where(same, 0), expected.score.where(same, 0))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # numpy's, in the interpreter
@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_nan_and_infinity_give_valid_indices_and_the_scores_of_the_reference(similarity: str) -> None:
    query, key = integer_map(1, 2, 9, 7, seed=1), integer_map(1, 2, 6, 11, seed=2)
    query[0, 0, 2, 3], query[0, 1, 7, 1] = math.nan, math.inf
    key[0, 1, 1, 1], key[0, 0, 4, 9], key[0, 0, 0, 5] = math.nan, -math.inf, 1e30
    actual, expected = matches_of(query, key, similarity=similarity)
    assert ((actual.index >= 0) & (actual.index < 66)).all()
    assert (actual.index[:, 0] != actual.index[:, 1]).all()
    if similarity != "cosine":  # a norm is a sum in another order, so ties with infinity differ
        assert_same_bits(actual.index, expected.index)
        assert_same_bits(actual.score, expected.score)


def test_the_scan_of_the_curves_agrees_with_plain_torch() -> None:
    """Descriptors of integers, so that ties are frequent and sums exact."""
    from psal.ops.triton import seeds

    queries, keys = integer_map(2, 70, 16, seed=1), integer_map(2, 90, 16, seed=2) // 3
    valid = random_mask(2, (90,), seed=3)[:, 0]
    valid[1, 20:] = False
    for mask in (None, valid):
        curves = [morton.curve(queries, keys, mask, torch.tensor(5), table) for table in range(2)]
        expected = morton.closest(queries, keys, mask, curves, 6)
        assert_same_bits(seeds.closest(queries, keys, mask, curves, 6), expected)


def test_an_empty_batch_gives_empty_matches() -> None:
    query, key = exact_pair((4, 5), (3, 6), batch=0)
    actual, expected = matches_of(query, key)
    assert actual.index.shape == expected.index.shape == (0, 2, 4, 5)


def test_a_mask_without_keys_gives_missing_matches() -> None:
    """A CUDA device does not check the mask, as the program would have to wait for it."""
    query, key = exact_pair((4, 5), (3, 6))
    mask = torch.zeros(1, 1, 3, 6, dtype=torch.bool)
    rest = [3, 3], 2, 1, 0, INIT_KINDS.index("random"), 0
    with TritonKernels():
        index, score = torch.ops.psal.search(query, key, mask, None, None, torch.tensor(3), *rest)
    assert (index == -1).all()
    assert (score == -math.inf).all()
