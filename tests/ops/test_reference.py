"""The reference against even simpler code: torch's own pad and unfold, and loops over pixels."""

import itertools
import math

import pytest
import torch
from support.maps import dense_scores, gradients, integer_map, normal_map, random_mask, random_matches
from support.tolerances import assert_all_close, assert_close, assert_same_bits
from torch import Tensor

import psal
from psal import ops
from psal.ops import morton, reference
from psal.options import SearchOptions, Similarity


@pytest.mark.parametrize("similarity", ["l2", "dot", "cosine"])
@pytest.mark.parametrize("patch_size", [1, 3, 5])
def test_scores_are_those_of_unfolded_patches(similarity: str, patch_size: int) -> None:
    query = normal_map(2, 3, 6, 5, dtype=torch.float64, seed=1)
    key = normal_map(2, 3, 4, 7, dtype=torch.float64, seed=2)
    index = random_matches(2, 4, (6, 5), (4, 7)).index
    expected = dense_scores(query, key, patch_size, similarity).mT.gather(1, index.flatten(2)).reshape(index.shape)
    actual = reference.score(query, key, index, SearchOptions(patch_size, similarity=similarity))
    assert_close(actual, expected)


def aggregate_by_loops(index: Tensor, score: Tensor, value: Tensor, side: int, temperature: float) -> Tensor:
    """Aggregate one image ``(1, Cv, H, W)`` pixel by pixel, following the definition."""
    neighbors, height, width = index.shape[1:]
    key_height, key_width = value.shape[2:]
    half = side // 2
    out = torch.zeros(1, value.shape[1], height, width, dtype=value.dtype)
    for y, x in itertools.product(range(height), range(width)):
        logits, values = [], []
        for dy, dx, n in itertools.product(range(-half, half + 1), range(-half, half + 1), range(neighbors)):
            if not (0 <= y + dy < height and 0 <= x + dx < width) or index[0, n, y + dy, x + dx] < 0:
                continue
            row, column = divmod(int(index[0, n, y + dy, x + dx]), key_width)
            if 0 <= row - dy < key_height and 0 <= column - dx < key_width:
                logits.append(score[0, n, y + dy, x + dx] / temperature)
                values.append(value[0, :, row - dy, column - dx])
        if logits:
            out[0, :, y, x] = torch.stack(logits).softmax(0) @ torch.stack(values)
    return out


def test_aggregation_and_its_gradients_are_those_of_a_loop_over_the_window() -> None:
    index, score = random_matches(1, 2, (5, 4), (6, 7))
    index = index.where(random_mask(1, (5, 4), seed=3), -1)
    value = normal_map(1, 3, 6, 7, dtype=torch.float64)
    expected = gradients(lambda s, v: aggregate_by_loops(index, s, v, 3, 0.8), score, value)
    actual = gradients(lambda s, v: reference.aggregate(psal.Matches(index, s), v, (3, 3), 0.8), score, value)
    assert_all_close(actual, expected, ("output", "score", "value"))


def test_attention_is_a_softmax_over_the_neighbors() -> None:
    index, score = random_matches(1, 3, (4, 5), (3, 6))
    value = normal_map(1, 2, 3, 6, dtype=torch.float64)
    values = value[0].flatten(1)[:, index[0]]  # [Cv, k, 4, 5]
    expected = ((score / 0.5).softmax(1) * values).sum(1)[None]
    assert_close(reference.attend(psal.Matches(index, score), value, 0.5), expected)


@pytest.mark.parametrize("neighbors", [1, 3])
def test_a_callable_similarity_equals_the_named_one(neighbors: int) -> None:
    query, key = integer_map(1, 2, 9, 7, seed=1), integer_map(1, 2, 8, 11, seed=2)

    def distance(q: Tensor, k: Tensor) -> Tensor:
        return -(q - k).square().sum(-1)

    named, called = (
        psal.patch_match(
            query, key, patch_size=3, neighbors=neighbors, similarity=similarity, init="random", seed=4,
            iterations=2, backend="reference",
        )
        for similarity in ("l2", distance)
    )  # fmt: skip
    assert_same_bits(called.index, named.index)
    assert_same_bits(called.score, named.score)


def test_a_callable_similarity_carries_gradients() -> None:
    query, key = (normal_map(1, 2, 4, 5, dtype=torch.float64, seed=seed) for seed in (1, 2))

    def match(similarity: Similarity, q: Tensor, k: Tensor) -> Tensor:
        return psal.patch_match(
            q, k, patch_size=3, similarity=similarity, init="random", seed=4, iterations=1, backend="reference"
        ).score  # fmt: skip

    called = gradients(lambda q, k: match(lambda a, b: (a * b).sum(-1), q, k), query, key)
    named = gradients(lambda q, k: match("dot", q, k), query, key)
    assert_all_close(called, named, ("score", "query", "key"))


def test_the_random_search_covers_the_map_and_ends_at_one_pixel() -> None:
    assert reference.search_radii((5, 12)) == [12, 6, 3, 1]


def test_no_two_draws_share_a_random_stream() -> None:
    """Guards against correlated draws; streams 0 to k belong to the random keys."""
    sk, neighbors, iterations = (5, 12), 3, 4
    streams = [
        reference.draw_stream(neighbors, iteration, draw, axis, sk)
        for iteration in range(iterations)
        for draw in range(len(reference.search_radii(sk)))
        for axis in range(len(sk))
    ]
    seeding = range(morton.FIRST_STREAM, morton.FIRST_STREAM + morton.TABLES)
    every = [*range(neighbors + 1), *streams, *seeding]
    assert len({stream % 2**32 for stream in every}) == len(every)


def test_the_start_spreads_over_all_keys() -> None:
    """Each of the 20 keys should be drawn near the mean of 3 × 4,000 / 20 = 600 times."""
    image = torch.zeros(1, 1, 4000)
    start = psal.patch_match(image, torch.zeros(1, 1, 20), init="random", iterations=0, seed=0, backend="reference")
    counts = start.index.flatten().bincount(minlength=20)
    assert math.isclose(counts.min(), 600, rel_tol=0.2)
    assert math.isclose(counts.max(), 600, rel_tol=0.2)


def test_values_outside_the_grid_do_not_contribute() -> None:
    """Guards against 0 · NaN: a position outside the grid reads the nearest pixel inside, with weight 0."""
    value = normal_map(1, 1, 5, 6)
    value[..., 0, 0] = math.nan
    matches = psal.patch_match(value.nan_to_num(), value.nan_to_num(), patch_size=3, neighbors=1, seed=0)
    out = [ops.aggregate(matches, value, (3, 3), 1.0, backend) for backend in ("native", "reference")]
    assert out[0].isnan().equal(out[1].isnan())
