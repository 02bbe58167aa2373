"""Variants of a fill differ in their sources."""

from itertools import combinations

import pytest
import torch
from support.holes import box_mask

import psal


def test_variants_take_other_sources_and_leave_the_rest_alone() -> None:
    hole = box_mask(151, 163, (50, 91, 60, 99))
    shared = []  # fractions of a fill's sources that another one uses too: they vary much from picture to picture
    for seed in range(3):
        image = torch.rand(3, 151, 163, generator=torch.Generator().manual_seed(seed))
        variants = psal.inpaint(image, hole, seed=0, variants=3, return_shifts=True)
        assert len(variants) == 3
        assert all(filled[:, ~hole].equal(image[:, ~hole]) for filled, _ in variants)
        used = [set(shifts.source.tolist()) for _, shifts in variants]
        shared += [len(a & b) / len(a) for a, b in combinations(used, 2)]
    assert sum(shared) / len(shared) < 0.2


def test_one_variant_is_the_fill_without_variants() -> None:
    image, hole = torch.rand(1, 60, 71, generator=torch.Generator().manual_seed(0)), box_mask(60, 71, (20, 41, 25, 49))
    (only,) = psal.inpaint(image, hole, seed=5, variants=1)
    assert only.equal(psal.inpaint(image, hole, seed=5))


def test_a_picture_without_a_hole_gives_copies() -> None:
    image = torch.rand(1, 20, 21)
    assert all(copy.equal(image) for copy in psal.inpaint(image, torch.zeros(20, 21, dtype=torch.bool), variants=2))


def test_wrong_counts_are_named() -> None:
    with pytest.raises(ValueError, match="variants must be at least 1, got 0"):
        psal.inpaint(torch.rand(1, 20, 21), box_mask(20, 21, (5, 9, 5, 9)), variants=0)
