"""Seeding in plain torch: descriptors, Morton curves, and the searches that start from them."""

import math
from itertools import product

import pytest
import torch
from support.maps import dense_patches, normal_map, random_mask
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

import psal
from psal.ops import descriptors, morton, reference
from psal.options import SIMILARITIES, SearchOptions


def smooth_pair(*shape: int, channels: int = 3) -> tuple[Tensor, Tensor]:
    """Two maps of large blobs, one shifted against the other."""
    noise = normal_map(1, channels, *shape, seed=1)
    for axis in range(2, noise.ndim):
        noise = sum((noise.roll(step, axis) for step in range(-3, 4)), start=torch.zeros(()))
    return noise, noise.roll([4] * len(shape), list(range(2, noise.ndim)))


@pytest.mark.parametrize("sides", [(5, 7), (9,), (3, 3, 3), (1, 5)], ids=str)
def test_the_dct_is_a_projection_on_orthonormal_cosines(sides: tuple[int, ...]) -> None:
    x = normal_map(1, 2, *(side + 2 for side in sides), dtype=torch.float64)
    frequencies = descriptors.dct_frequencies(sides)
    actual = descriptors.dct(x, sides, frequencies)  # [1, 2, frequencies, 3, …]
    for number, frequency in enumerate(frequencies):
        weights = torch.ones((), dtype=torch.float64)
        for side, wave in zip(sides, frequency, strict=True):
            cosine = (torch.pi * (2 * torch.arange(side) + 1).double() * wave / (2 * side)).cos()
            weights = weights[..., None] * cosine / cosine.norm()
        corner = x[(slice(None), slice(None), *(slice(0, side) for side in sides))]
        torch.testing.assert_close(actual[(0, 0, number, *[0] * len(sides))], (corner[0, 0] * weights).sum())


def test_distances_of_descriptors_are_close_to_those_of_patches_and_never_above() -> None:
    query, key = smooth_pair(17, 13)
    described = descriptors.describe(query, key, SearchOptions(5))
    patches = [dense_patches(x, 5) for x in (query, key)]
    short, full = (torch.cdist(a, b, compute_mode="donot_use_mm_for_euclid_dist") for a, b in (described, patches))
    assert (short <= full * (1 + 1e-4)).all()
    assert short.mean() > 0.8 * full.mean()


def test_descriptors_of_single_pixels_lose_nothing() -> None:
    query, key = (normal_map(1, 6, 9, 8, seed=seed) for seed in (1, 2))
    described = descriptors.describe(query, key, SearchOptions(1))
    patches = [dense_patches(x, 1) for x in (query, key)]
    torch.testing.assert_close(
        *(torch.cdist(a, b, compute_mode="donot_use_mm_for_euclid_dist") for a, b in (described, patches)),
        rtol=1e-3,
        atol=1e-3,
    )


@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize(("shape", "patch_size"), [((30, 23), 5), ((300,), 7), ((9, 10, 11), 3)], ids=str)
def test_a_seeded_search_beats_the_schedule_of_the_paper(
    similarity: str, shape: tuple[int, ...], patch_size: int
) -> None:
    query, key = smooth_pair(*shape)
    seeded, random = (
        psal.patch_match(
            query, key, patch_size=patch_size, similarity=similarity, init=init, seed=3, backend="reference"
        )
        for init in ("tree", "random")
    )
    assert seeded.score[:, 0].mean() >= random.score[:, 0].mean() - 1e-4 * random.score.abs().mean()


def test_candidates_are_valid_different_and_closest_first() -> None:
    query, key = (normal_map(2, 3, *size, seed=1) for size in ((9, 8), (7, 12)))
    mask = random_mask(2, (7, 12), seed=5)
    options = SearchOptions(3, neighbors=6)
    seeds = morton.morton_seeds(query, key, mask, torch.tensor(1), options).flatten(2)  # [B, m, N]
    assert seeds.shape == (2, 8, 72)
    assert mask.flatten(1).gather(1, seeds.flatten(1)).all()
    ordered = seeds.sort(1).values
    assert (ordered[:, 1:] != ordered[:, :-1]).all()
    queries, keys = descriptors.describe(query, key, options)
    near = keys.gather(1, seeds.mT.flatten(1)[..., None].expand(-1, -1, 16)).reshape(2, 72, 8, 16)
    distance = (near - queries[:, :, None]).square().sum(3)
    assert (distance.diff(dim=2) >= -1e-4).all()


def test_few_keys_leave_candidates_missing() -> None:
    query, key = (normal_map(1, 2, *size, seed=1) for size in ((5, 4), (3, 3)))
    mask = torch.zeros(1, 1, 3, 3, dtype=torch.bool)
    mask[..., 1] = True
    seeds = morton.morton_seeds(query, key, mask, torch.tensor(1), SearchOptions(3)).flatten(2)
    assert seeds.sort(1).values[0, :, 7].tolist() == [-1, -1, 1, 4, 7]


def test_queries_at_the_ends_of_a_curve_look_at_a_whole_window() -> None:
    query, key = (normal_map(1, 1, *size, seed=seed) for size, seed in (((5, 7), 1), ((3, 9), 2)))
    queries, keys = descriptors.describe(3 * query, key, SearchOptions(1))
    curve = morton.curve(queries, keys, None, torch.tensor(1), table=0)
    found = morton.closest(queries, keys, None, [curve], kept=27)  # fewer keys than a window has
    assert found.sort(1).values.eq(torch.arange(27)[:, None]).all()


def test_a_curve_tells_values_apart_that_are_close_among_many() -> None:
    query, key = (normal_map(1, 1, *size, seed=seed) for size, seed in (((17, 13), 1), ((19, 33), 2)))
    found = morton.morton_seeds(query, key, None, torch.tensor(1), SearchOptions(1)).flatten(2)[0, 0]
    closest = torch.cdist(query.flatten(2)[0].mT, key.flatten(2)[0].mT).argmin(1)
    assert (found == closest).float().mean() > 0.95


def test_other_seeds_give_other_curves_and_the_same_seed_the_same() -> None:
    query, key = (normal_map(1, 3, 24, 24, seed=seed) for seed in (1, 2))
    first, again, other = (
        morton.morton_seeds(query, key, None, torch.tensor(seed), SearchOptions(3)) for seed in (1, 1, 2)
    )
    assert first.equal(again)
    assert not first.equal(other)


def test_nan_and_infinity_give_valid_candidates() -> None:
    query, key = (normal_map(1, 3, 9, 8, seed=seed) for seed in (1, 2))
    query[0, 0, 2, 2], query[0, 1, 5, 5], key[0, 2, 4, 4], key[0, 0, 1, 7] = math.nan, math.inf, -math.inf, math.nan
    for similarity, size in product(SIMILARITIES, (1, 3)):
        options = SearchOptions(size, similarity=similarity)
        seeds = morton.morton_seeds(query, key, None, torch.tensor(1), options)
        assert ((seeds >= 0) & (seeds < 72)).all()


@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize("masked", [False, True])
def test_seeding_reads_nothing_back_from_the_device(similarity: str, masked: bool) -> None:
    """A value that the program needed would be an error for a tensor without values."""
    with FakeTensorMode():
        query, key = (torch.empty(1, 3, *size) for size in ((30, 20), (40, 50)))
        mask = torch.ones(1, 1, 40, 50, dtype=torch.bool) if masked else None
        seed = torch.zeros((), dtype=torch.int64)
        options = SearchOptions(5, similarity=similarity)
        seeds = morton.morton_seeds(query, key, mask, seed, options)
    assert seeds.shape == (1, 5, 30, 20)


def test_a_function_cannot_be_seeded() -> None:
    image = normal_map(1, 3, 9, 8)
    with pytest.raises(ValueError, match=r"init='tree' needs similarity 'l2', 'dot' or 'cosine', got a function"):
        psal.patch_match(image, image, init="tree", similarity=lambda q, k: (q * k).sum(-1))


def test_a_seeded_schedule_has_one_more_flood_and_few_draws() -> None:
    start = SearchOptions(init="tree", iterations=2).start("random")
    assert reference.schedule_of(start, (5, 100)) == reference.Schedule(3, [6, 3, 1])
