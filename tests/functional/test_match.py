"""patch_match: valid matches, scores that never get worse, inits, masks and non-finite values."""

import itertools
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from support.maps import dense_scores, integer_map, normal_map, random_mask, random_matches
from support.tolerances import assert_close, assert_not_worse, assert_same_bits
from torch import Tensor

import psal

SIMILARITIES = ("l2", "dot", "cosine")
INITS = ("random", "tree", "matches")


def init_of(name: str, sq: Sequence[int], sk: Sequence[int], batch: int = 1) -> str | psal.Matches:
    return random_matches(batch, 2, sq, sk, seed=3) if name == "matches" else name


@pytest.mark.parametrize(
    ("size", "patch_size"),
    [
        ((23, 19), 7),
        ((23, 19), 3),
        ((23, 19), 1),
        ((67, 61), 5),
        ((40, 3), (3, 5)),
        ((211,), 5),
        ((211,), 1),
        ((5, 9, 8), 3),
        ((5, 9, 8), (1, 3, 3)),
    ],
    ids=str,
)
def test_every_pixel_of_a_textured_map_finds_itself(size: tuple[int, ...], patch_size: Any) -> None:
    image = normal_map(2, 3, *size)
    matches = psal.patch_match(image, image, patch_size=patch_size, neighbors=2, init="tree", seed=0)
    pixels = torch.arange(image[0, 0].numel()).reshape(size).expand(2, *size)
    assert_same_bits(matches.index[:, 0], pixels)
    assert_same_bits(matches.score[:, 0], torch.zeros(2, *size))


@pytest.mark.parametrize("init", INITS)
@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_more_iterations_never_make_a_score_worse(init: str, similarity: str) -> None:
    sq, sk = (17, 13), (15, 19)
    query, key = normal_map(1, 3, *sq, seed=1), normal_map(1, 3, *sk, seed=2)
    scores = [
        psal.patch_match(
            query, key, patch_size=3, similarity=similarity, init=init_of(init, sq, sk), iterations=iterations, seed=4
        ).score
        for iterations in range(5)
    ]
    for before, after in itertools.pairwise(scores):
        assert_not_worse(after, before)


@pytest.mark.parametrize("init", INITS)
@pytest.mark.parametrize("similarity", ["l2", "dot"])
def test_more_iterations_never_make_a_score_worse_by_even_a_bit(init: str, similarity: str) -> None:
    """On integers, which are exact, with both masks and a batch."""
    sq, sk = (11, 13), (15, 9)
    query, key = integer_map(2, 3, *sq, seed=1), integer_map(2, 3, *sk, seed=2)
    scores = [
        psal.patch_match(
            query, key, patch_size=5, similarity=similarity, init=init_of(init, sq, sk, 2), iterations=iterations,
            seed=4, key_mask=random_mask(2, sk, seed=5), query_mask=random_mask(2, sq, seed=6),
        ).score
        for iterations in range(5)
    ]  # fmt: skip
    for before, after in itertools.pairwise(scores):
        assert (after >= before).all()


def test_iterations_improve_a_random_start() -> None:
    image = normal_map(1, 3, 24, 24)
    start, later = (
        psal.patch_match(image, image.roll(5, 3), init="random", iterations=iterations, seed=0).score[:, 0].mean()
        for iterations in (0, 5)
    )
    assert later > 0.5 * start


@pytest.mark.parametrize("init", INITS)
@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_a_search_among_as_many_keys_as_neighbors_is_exhaustive(init: str, similarity: str) -> None:
    sq, sk = (5, 6), (4, 5)
    query, key = (normal_map(2, 2, *size, dtype=torch.float64, seed=seed) for seed, size in enumerate([sq, sk]))
    matches = psal.patch_match(
        query, key, patch_size=3, neighbors=20, similarity=similarity, init=init_of(init, sq, sk, 2), iterations=0
    )
    expected = dense_scores(query, key, 3, similarity).mT.sort(1, descending=True)
    assert_same_bits(matches.index.flatten(2), expected.indices)
    assert_close(matches.score.flatten(2), expected.values)


@pytest.mark.parametrize("image", [normal_map(1, 2, 19, 23), torch.ones(1, 2, 19, 23)], ids=["textured", "constant"])
def test_a_tree_gives_as_many_neighbors_as_asked_for(image: torch.Tensor) -> None:
    """More than a leaf of the tree holds, and nearly as many as there are valid keys."""
    mask = random_mask(1, (19, 23), fraction=0.5)
    neighbors = int(mask.sum()) - 1
    matches = psal.patch_match(image, image, patch_size=3, neighbors=neighbors, init="tree", key_mask=mask, seed=0)
    assert mask.flatten()[matches.index].all()
    assert (matches.index.sort(1).values.diff(dim=1) > 0).all()


@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_a_tree_start_comes_close_to_the_exact_matches(similarity: str) -> None:
    """On a smooth image and a shifted, noisy copy; the bound is loose, benchmarks measure the quality."""
    generator = torch.Generator().manual_seed(0)
    noise = torch.nn.functional.avg_pool2d(torch.rand(1, 3, 44, 44, generator=generator), 5, 1)
    key = noise - noise.mean()
    query = key.roll((3, -5), (2, 3)) + 0.01 * normal_map(1, 3, 40, 40)
    found = psal.patch_match(query, key, patch_size=5, similarity=similarity, init="tree", seed=0)
    exact = psal.exact_match(query, key, patch_size=5, similarity=similarity)
    assert psal.match_quality(found, exact, similarity=similarity).cost_ratio < 1.2


def test_a_warm_start_keeps_the_best_matches() -> None:
    query, key = normal_map(1, 3, 15, 14, seed=1), normal_map(1, 3, 13, 17, seed=2)
    exact = psal.exact_match(query, key, patch_size=3)
    warm = psal.patch_match(query, key, patch_size=3, init=exact)
    assert_same_bits(warm.index, exact.index)


def test_a_warm_start_may_have_another_number_of_neighbors() -> None:
    query, key = normal_map(1, 3, 15, 14, seed=1), normal_map(1, 3, 13, 17, seed=2)
    for given in (1, 6):
        exact = psal.exact_match(query, key, patch_size=3, neighbors=given)
        warm = psal.patch_match(query, key, patch_size=3, neighbors=2, init=exact)
        assert_same_bits(warm.index[:, 0], exact.index[:, 0])


@pytest.mark.parametrize("backend", ["native", "reference"])
def test_without_an_init_each_backend_takes_its_default(backend: str) -> None:
    query, key = normal_map(1, 3, 15, 14, seed=1), normal_map(1, 3, 13, 17, seed=2)
    default = psal.patch_match(query, key, patch_size=3, seed=1, backend=backend)
    named = psal.patch_match(
        query, key, patch_size=3, seed=1, backend=backend, init="tree" if backend == "native" else "random"
    )
    assert_same_bits(default.index, named.index)


def test_a_random_start_takes_five_iterations_as_in_the_paper() -> None:
    image = normal_map(1, 2, 19, 17)
    default, five = (
        psal.patch_match(image, image, patch_size=3, init="random", seed=1, iterations=iterations).index
        for iterations in (None, 5)
    )
    assert_same_bits(default, five)


@pytest.mark.parametrize("init", ["random", "tree"])
def test_an_empty_batch_gives_empty_matches(init: str) -> None:
    image = torch.empty(0, 3, 6, 5)
    matches = psal.patch_match(image, image, patch_size=3, init=init)
    assert matches.index.shape == matches.score.shape == (0, 3, 6, 5)


@pytest.mark.parametrize(
    ("init", "backend"), [*((init, "native") for init in INITS), ("random", "reference"), ("matches", "reference")]
)
def test_masked_queries_get_no_match(init: str, backend: str) -> None:
    sq, sk = (9, 8), (7, 11)
    query, key, mask = normal_map(2, 3, *sq), normal_map(2, 3, *sk), random_mask(2, sq)
    matches = psal.patch_match(
        query, key, patch_size=3, init=init_of(init, sq, sk, 2), query_mask=mask, backend=backend
    )
    left_out = ~mask.expand_as(matches.index)
    assert (matches.index[left_out] == -1).all()
    assert (matches.score[left_out] == -torch.inf).all()
    assert (matches.index[~left_out] >= 0).all()


@pytest.mark.parametrize("init", INITS)
def test_all_queries_may_be_masked(init: str) -> None:
    sq, sk = (9, 8), (7, 11)
    matches = psal.patch_match(
        normal_map(1, 3, *sq), normal_map(1, 3, *sk), patch_size=3, init=init_of(init, sq, sk),
        query_mask=torch.zeros(1, 1, *sq, dtype=torch.bool),
    )  # fmt: skip
    assert (matches.index == -1).all()


@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_masked_columns_that_no_patch_reaches_change_nothing(similarity: str) -> None:
    """Enough channels that costs are updated from one pixel to the next, by offsets that depend on the widths."""
    sq, sk, channels = (23, 29), (21, 24), 16
    query, key = normal_map(1, channels, *sq, seed=1), normal_map(1, channels, 21, 47, seed=2)
    start = random_matches(1, 2, sq, sk, dtype=torch.float32)

    def search(width: int) -> tuple[Tensor, Tensor]:
        mask = torch.zeros(1, 1, 21, width, dtype=torch.bool)
        mask[..., :24] = True
        init = psal.Matches(start.index // 24 * width + start.index % 24, start.score)
        found = psal.patch_match(
            query, key[..., :width], patch_size=7, neighbors=2, iterations=4, init=init, key_mask=mask, seed=0,
            similarity=similarity,
        )  # fmt: skip
        return found.index // width * 24 + found.index % width, found.score

    for narrow, wide in zip(search(33), search(47), strict=True):
        assert_same_bits(narrow, wide)


@pytest.mark.parametrize("init", INITS)
def test_masked_pixels_do_not_affect_the_matches(init: str) -> None:
    """One-pixel patches, so that a masked pixel is in no other patch: changing it must change nothing."""
    sq, sk = (9, 8), (7, 11)
    query, key = integer_map(1, 3, *sq, seed=1), integer_map(1, 3, *sk, seed=2)
    key_mask, query_mask = random_mask(1, sk, seed=3), random_mask(1, sq, seed=4)
    clean, dirty = (
        psal.patch_match(
            query.where(query_mask, filling), key.where(key_mask, filling), patch_size=1, seed=0, similarity="dot",
            init=init_of(init, sq, sk), key_mask=key_mask, query_mask=query_mask,
        )
        for filling in (torch.tensor(0.0), torch.tensor(torch.nan))
    )  # fmt: skip
    assert key_mask.flatten()[clean.index.clamp_min(0)][clean.index >= 0].all()
    assert key_mask.flatten()[dirty.index.clamp_min(0)][dirty.index >= 0].all()
    if init != "tree":  # a tree's descriptors may depend on all pixels
        assert_same_bits(clean.index, dirty.index)


@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize("poison", [torch.nan, torch.inf, -torch.inf, 3e38])
@pytest.mark.parametrize("init", INITS)
def test_a_masked_query_scores_minus_infinity_for_any_value(similarity: str, poison: float, init: str) -> None:
    """Guards against −∞ times a norm that is zero or NaN."""
    query, key, mask = normal_map(1, 2, 5, 6), normal_map(1, 2, 7, 4), torch.ones(1, 1, 5, 6, dtype=torch.bool)
    query[..., 2, 3], mask[..., 2, 3] = poison, False
    matches = psal.patch_match(
        query, key, patch_size=1, similarity=similarity, query_mask=mask, init=init_of(init, (5, 6), (7, 4))
    )
    assert (matches.score[..., 2, 3] == -torch.inf).all()


@pytest.mark.parametrize("init", INITS)
def test_scores_come_best_first_where_a_norm_overflows(init: str) -> None:
    """Guards against ranking by products before dividing by an infinite norm: ∞ / ∞ came first."""
    query = torch.tensor([[[-3e38, 3e38, 1e20], [1e20, 3e38, -3e38]]])
    key = 3 * normal_map(1, 2, 9)
    score = psal.patch_match(
        query, key, patch_size=1, neighbors=5, similarity="cosine", init=init_of(init, (3,), (9,))
    ).score.nan_to_num(nan=-torch.inf, posinf=torch.inf, neginf=-torch.inf)
    assert (score[:, :-1] >= score[:, 1:]).all()


@pytest.mark.parametrize("poison", [torch.nan, torch.inf, -torch.inf, 3e38, -3e38])
@pytest.mark.parametrize("poisoned", ["query", "key", "both"])
@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize("init", INITS)
def test_indices_are_in_range_with_non_finite_or_overflowing_pixels(
    poison: float, poisoned: str, similarity: str, init: str
) -> None:
    """Guards against overflowing descriptors: the tree then finds no key closer than infinity, but must return k."""
    query, key = normal_map(1, 3, 12, 13, seed=1), normal_map(1, 3, 14, 11, seed=2)
    if poisoned != "key":
        query[0, 0, 0, 0] = poison
    if poisoned != "query":
        key[0, 1, 7, 3] = poison
    index = psal.patch_match(
        query, key, patch_size=7, similarity=similarity, init=init_of(init, (12, 13), (14, 11)), seed=0
    ).index
    assert ((index >= 0) & (index < 14 * 11)).all()
    assert (index.sort(1).values.diff(dim=1) > 0).all()
