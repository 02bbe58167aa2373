"""Native gradients against the reference where the kernels cut their work: channels, links, windows and rows."""

import subprocess
import sys
from typing import Any

import pytest
import torch
from support.maps import gradients, normal_map, random_mask, random_matches
from support.tolerances import assert_all_close
from torch import Tensor

import psal
from psal import ops
from psal.measure.memory import STATUS
from psal.ops import native
from psal.options import SIMILARITIES, SearchOptions

BATCH_OF_LINKS = 1024  # of one row of keys whose weights are computed at once: kTermCapacity
PEAKS = """
import torch
import psal
from psal import ops
from psal.measure.memory import peak_of, return_freed_memory
from psal.options import SearchOptions

return_freed_memory()
index = torch.randint(200 * 200, (1, 1, 200, 200))
inputs = [torch.rand(1, 1, 200, 200, requires_grad=True) for _ in range(2)]
for function in (
    lambda side: psal.aggregate(psal.Matches(index, inputs[0]), inputs[1], patch_size=side),
    lambda side: ops.score(*inputs, index, SearchOptions(side)),
):
    outputs = [function(side).sum() for side in (3, 15)]
    torch.autograd.grad(outputs[0], inputs, retain_graph=True)  # the first call allocates more
    for out in outputs:
        print(peak_of(lambda: torch.autograd.grad(out, inputs), out.device))
"""
TYPES = (torch.float32, torch.float64)


def assert_aggregation_agrees(matches: psal.Matches, value: Tensor, sides: tuple[int, ...]) -> None:
    """Output and gradients of both backends."""
    index, score = matches
    actual, expected = (
        gradients(
            lambda s, v, backend=backend: ops.aggregate(psal.Matches(index, s), v, sides, 0.7, backend), score, value
        )
        for backend in ("native", "reference")
    )
    assert_all_close(actual, expected, ("output", "score", "value"))


def assert_scores_agree(query: Tensor, key: Tensor, index: Tensor, sides: tuple[int, ...], **options: Any) -> None:
    """Scores and gradients of both backends."""
    searches = (SearchOptions(sides, backend=backend, **options) for backend in ("native", "reference"))
    actual, expected = (gradients(lambda q, k, o=o: ops.score(q, k, index, o), query, key) for o in searches)
    assert_all_close(actual, expected, ("score", "query", "key"))


@pytest.mark.parametrize("path", native.simd_paths())
@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("side", [1, 3])
@pytest.mark.parametrize("channels", [1, 2, 4, 7, 8, 9, 15, 16, 17, 24, 31, 32, 33, 64, 100])
def test_aggregation_agrees_for_any_number_of_channels(channels: int, side: int, dtype: torch.dtype, path: str) -> None:
    """More channels than fit in a register, whole registers of them, and one more."""
    with native.simd_path(path):
        assert_aggregation_agrees(
            random_matches(1, 2, (5, 7), (6, 5), dtype=dtype), normal_map(1, channels, 6, 5, dtype=dtype), (side, side)
        )


@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize("channels", [1, 8, 15, 16, 17, 33, 64])
def test_scores_agree_for_any_number_of_channels(channels: int, similarity: str) -> None:
    query, key = normal_map(2, channels, 5, 7, seed=1), normal_map(2, channels, 6, 5, seed=2)
    index = random_matches(2, 2, (5, 7), (6, 5)).index
    assert_scores_agree(query, key, index, (3, 3), similarity=similarity)


WINDOWS = [
    ((67, 9), (71, 11), (9, 9)),
    ((35, 23), (61, 13), (11, 11)),
    ((33, 31), (47, 29), (15, 15)),
    ((41, 17), (37, 19), (15, 1)),
    ((9, 67), (19, 61), (1, 15)),
    ((29, 17), (33, 13), (9, 3)),
    ((17, 25), (35, 19), (3, 17)),
    ((5, 4), (3, 6), (15, 11)),  # the window is larger than the maps
    ((1, 9), (9, 1), (5, 5)),
    ((131,), (97,), (11,)),
    ((3,), (5,), (9,)),
    ((3, 19, 7), (2, 35, 5), (3, 5, 3)),  # several tasks, each of all slices
    ((5, 17, 3), (4, 26, 5), (5, 3, 1)),
    ((9, 1, 7), (6, 2, 5), (3, 3, 5)),
]


@pytest.mark.parametrize(("sq", "sk", "sides"), WINDOWS, ids=str)
def test_aggregation_agrees_for_windows_of_any_shape(
    sq: tuple[int, ...], sk: tuple[int, ...], sides: tuple[int, ...]
) -> None:
    index, score = random_matches(2, 2, sq, sk)
    index = index.where(random_mask(2, sq, seed=5), -1)
    assert_aggregation_agrees(psal.Matches(index, score), normal_map(2, 3, *sk, dtype=torch.float64), sides)


@pytest.mark.parametrize("padding_mode", ["replicate", "reflect", "zeros"])
@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize(
    ("sq", "sk", "sides"),
    [
        ((11, 7), (9, 13), (9, 3)),
        ((5, 4), (3, 6), (7, 9)),
        ((23,), (17,), (11,)),
        ((3, 5, 4), (2, 7, 3), (3, 5, 3)),
    ],
    ids=str,
)
def test_scores_agree_for_patches_of_any_shape(
    sq: tuple[int, ...], sk: tuple[int, ...], sides: tuple[int, ...], similarity: str, padding_mode: str
) -> None:
    query, key = (normal_map(2, 3, *size, dtype=torch.float64, seed=seed) for seed, size in enumerate((sq, sk)))
    index = random_matches(2, 2, sq, sk).index
    index = index.where(random_mask(2, sq, seed=5), -1)
    assert_scores_agree(query, key, index, sides, similarity=similarity, padding_mode=padding_mode)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("side", [1, 5])
@pytest.mark.parametrize("keys", [1, 2, 7], ids="{}_keys".format)
@pytest.mark.parametrize("links", [-1, 0, 1, BATCH_OF_LINKS + 1])
def test_aggregation_agrees_where_many_queries_match_the_same_keys(
    links: int, keys: int, side: int, dtype: torch.dtype
) -> None:
    """As many links into one row of keys as one batch of weights holds; one fewer and more; and several batches."""
    sq, sk = (1, BATCH_OF_LINKS + links), (9, 7)
    index = 28 + torch.randint(keys, (1, 1, *sq))  # the middle row
    score = normal_map(1, 1, *sq, dtype=dtype, seed=1)
    assert_aggregation_agrees(psal.Matches(index, score), normal_map(1, 2, *sk, dtype=dtype, seed=2), (side, side))


@pytest.mark.parametrize("neighbors", [1, 3])
def test_attention_agrees_where_a_mask_leaves_three_keys(neighbors: int) -> None:
    """All queries match keys of one row: with more links than one batch of weights holds."""
    sq, sk = (37, 31), (35, 29)
    query, key, value = (normal_map(1, 2, *size, seed=seed) for seed, size in enumerate((sq, sk, sk)))
    key_mask = torch.zeros(1, 1, *sk, dtype=torch.bool)
    key_mask[..., 16, 9:12] = True
    matches = psal.patch_match(query, key, patch_size=3, neighbors=neighbors, key_mask=key_mask, seed=0)
    assert_aggregation_agrees(matches._replace(score=matches.score / 50), value, (3, 3))
    assert_scores_agree(query, key, matches.index, (3, 3))


@pytest.mark.skipif(not STATUS.exists(), reason="peak memory is read from /proc")
def test_peak_memory_of_backward_does_not_grow_with_the_window() -> None:
    """One value per link and pixel of its window would take 36 MB; the borders of the maps may grow."""
    run = subprocess.run([sys.executable, "-c", PEAKS], capture_output=True, text=True, check=True)
    peaks = [int(line) for line in run.stdout.split()]
    assert peaks[1] < peaks[0] + 3e6, "the gradients of attention"
    assert peaks[3] < peaks[2] + 3e6, "the gradients of scores"
