"""Scores, attention and all gradients of the Triton kernels against the reference."""

from functools import partial

import pytest
import torch
from support.interpreter import TritonKernels
from support.maps import gradients, normal_map, random_mask, random_matches
from support.tolerances import assert_all_close, assert_close, assert_same_bits
from torch import Tensor

import psal
from psal import ops
from psal.options import PADDING_MODES, SIMILARITIES, SearchOptions

GRIDS = (((9, 7), (5, 11), (3, 1)), ((17,), (23,), (5,)), ((3, 4, 4), (4, 3, 5), (1, 3, 3)))


def masked_matches(sq: tuple[int, ...], sk: tuple[int, ...], dtype: torch.dtype = torch.float32) -> psal.Matches:
    """Matches of which some queries have none."""
    index, score = random_matches(2, 2, sq, sk, dtype=dtype)
    mask = random_mask(2, sq, seed=8)
    return psal.Matches(index.where(mask, -1), score.where(mask, -torch.inf))


@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize(("sq", "sk", "sides"), GRIDS, ids=str)
def test_scores_and_their_gradients_agree(
    similarity: str, sq: tuple[int, ...], sk: tuple[int, ...], sides: tuple[int, ...]
) -> None:
    query, key = normal_map(2, 3, *sq, seed=1), normal_map(2, 3, *sk, seed=2)
    index = masked_matches(sq, sk).index
    for padding_mode in PADDING_MODES if (len(sq), similarity) == (1, "l2") else ("reflect",):

        def score(q: Tensor, k: Tensor, backend: str, padding_mode: str = padding_mode) -> Tensor:
            options = SearchOptions(sides, similarity=similarity, padding_mode=padding_mode, backend=backend)
            return ops.score(q, k, index, options)

        with TritonKernels():
            actual = gradients(partial(score, backend="native"), query, key)
        expected = gradients(partial(score, backend="reference"), query, key)
        assert_all_close(actual, expected, ("score", "query", "key"))


@pytest.mark.parametrize("window", [False, True], ids=["attend", "aggregate"])
@pytest.mark.parametrize(("sq", "sk", "sides"), GRIDS, ids=str)
def test_attention_and_its_gradients_agree(
    window: bool, sq: tuple[int, ...], sk: tuple[int, ...], sides: tuple[int, ...]
) -> None:
    dtype = torch.float32 if window else torch.float64
    index, score = masked_matches(sq, sk, dtype)
    value = normal_map(2, 5, *sk, dtype=dtype, seed=3)
    sides = sides if window else (1,) * len(sq)

    def attention(s: Tensor, v: Tensor, backend: str) -> Tensor:
        return ops.aggregate(psal.Matches(index, s), v, sides, 0.7, backend)

    with TritonKernels():
        actual = gradients(partial(attention, backend="native"), score, value)
    expected = gradients(partial(attention, backend="reference"), score, value)
    assert_close(actual[0], expected[0])
    assert_close(actual[1][index >= 0], expected[1][index >= 0])
    assert_close(actual[2], expected[2])


@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize("aggregate", [False, True])
def test_the_layer_and_all_gradients_agree(similarity: str, aggregate: bool) -> None:
    query, key, value = (
        normal_map(1, channels, *size, dtype=torch.float64, seed=seed)
        for seed, (channels, size) in enumerate([(2, (7, 6)), (2, (5, 8)), (4, (5, 8))])
    )
    attention = partial(
        psal.patch_attention,
        patch_size=3,
        neighbors=2,
        aggregate=aggregate,
        similarity=similarity,
        temperature=1.0 if similarity == "cosine" else 50.0,
        init="random",
        iterations=1,
        seed=3,
        key_mask=random_mask(1, (5, 8), seed=5),
        query_mask=random_mask(1, (7, 6), seed=6),
    )
    with TritonKernels():
        actual = gradients(partial(attention, backend="native"), query, key, value)
    expected = gradients(partial(attention, backend="reference"), query, key, value)
    assert_all_close(actual, expected, ("output", "query", "key", "value"))


def test_gradients_have_the_same_bits_in_every_run() -> None:
    query, key, value = (normal_map(1, 20, 4, 5, seed=seed) for seed in range(3))
    attention = partial(
        psal.patch_attention,
        patch_size=3,
        neighbors=2,
        aggregate=True,
        temperature=90.0,
        init="random",
        iterations=0,
        seed=3,
    )
    with TritonKernels():
        first, again = (gradients(attention, query, key, value) for _ in range(2))
    for a, b in zip(first, again, strict=True):
        assert_same_bits(a, b)


def test_one_match_has_no_gradient_to_query_and_key() -> None:
    query, key, value = (normal_map(1, 3, 5, 6, seed=seed) for seed in range(3))
    attention = partial(psal.patch_attention, patch_size=3, neighbors=1, init="random", iterations=0, seed=3)
    with TritonKernels():
        _, grad_query, grad_key, _ = gradients(attention, query, key, value)
    assert not grad_query.any()
    assert not grad_key.any()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_values_of_half_types_are_averaged_in_float32(dtype: torch.dtype) -> None:
    index, score = masked_matches((9, 7), (5, 11))
    value = normal_map(2, 5, 5, 11, seed=3).to(dtype)
    grad = normal_map(2, 5, 9, 7, seed=4)
    with TritonKernels():
        out, log_mass = torch.ops.psal.attend(index, score, value, [1, 3], 0.7)
        grad_score, grad_value = torch.ops.psal.attend_backward(grad, index, score, value, out, log_mass, [1, 3], 0.7)
    expected_out, expected_mass = torch.ops.psal.attend(index, score, value.float(), [1, 3], 0.7)
    expected = torch.ops.psal.attend_backward(
        grad, index, score, value.float(), expected_out, expected_mass, [1, 3], 0.7
    )
    assert out.dtype == torch.float32
    assert_close(out, expected_out)
    assert_close(log_mass[:, 0] / 0.7 + log_mass[:, 1], expected_mass[:, 0] / 0.7 + expected_mass[:, 1])
    assert_close(grad_score, expected[0])
    assert_close(grad_value, expected[1].to(dtype))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # numpy's, in the interpreter
def test_nan_and_infinite_scores_make_the_same_outputs_nan() -> None:
    index, score = masked_matches((9, 7), (5, 11))
    score[0, 0, 2, 3], score[1, 1, 4, 4], score[1, :, 6, 1] = torch.nan, torch.inf, -torch.inf
    value = normal_map(2, 3, 5, 11, seed=3)
    value[0, 1, 2, 2] = torch.nan
    with TritonKernels():
        actual = ops.aggregate(psal.Matches(index, score), value, (3, 1), 0.7, "native")
    assert_close(actual, ops.aggregate(psal.Matches(index, score), value, (3, 1), 0.7, "reference"))


def test_matches_outside_the_grid_are_skipped() -> None:
    """A CUDA device does not check indices, as the program would have to wait for it; nothing may be read there."""
    index, score = masked_matches((9, 7), (5, 11))
    wrong = index.clone()
    wrong[:, 1, :4] = 55 + 1000
    wrong[:, 1, 4:] = 2**40
    value, grad = normal_map(2, 3, 5, 11, seed=3), normal_map(2, 3, 9, 7, seed=4)
    index[:, 1] = -1
    results = []
    with TritonKernels():
        for given in (wrong, index):
            out, log_mass = torch.ops.psal.attend(given, score, value, [3, 1], 0.7)
            results.append(
                (out, *torch.ops.psal.attend_backward(grad, given, score, value, out, log_mass, [3, 1], 0.7))
            )
    for actual, expected in zip(*results, strict=True):
        assert_same_bits(actual, expected)
