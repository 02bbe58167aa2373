"""FLOPs of the ops as torch's FLOP counter reports them."""

from collections.abc import Callable

import pytest
import torch
from support.maps import normal_map, random_matches
from torch.utils.flop_counter import FlopCounterMode

import psal
from psal.ops.flops import DESCRIPTOR, LEAF_SIZE
from psal.ops.reference import search_radii


def flops(function: Callable[[], object]) -> int:
    with FlopCounterMode(display=False) as counter:
        function()
    return int(counter.get_total_flops())


@pytest.mark.parametrize(("similarity", "per_element"), [("l2", 3), ("dot", 2), ("cosine", 2)])
@pytest.mark.parametrize(("sq", "sk"), [((9, 7), (8, 11)), ((13,), (40,)), ((3, 4, 5), (2, 3, 4))], ids=str)
def test_a_random_search_counts_every_comparison(
    similarity: str, per_element: int, sq: tuple[int, ...], sk: tuple[int, ...]
) -> None:
    """k at the start; per iteration four jumps along every axis in both directions, and one draw per radius."""
    batch, channels, neighbors, iterations, side = 2, 5, 3, 4, 3
    query, key = normal_map(batch, channels, *sq), normal_map(batch, channels, *sk)
    compared = neighbors + iterations * (4 * 2 * len(sq) + len(search_radii(sk)))
    expected = batch * query[0, 0].numel() * compared * per_element * channels * side ** len(sq)
    assert expected == flops(
        lambda: psal.patch_match(
            query, key, patch_size=side, neighbors=neighbors, iterations=iterations, similarity=similarity,
            init="random",
        )
    )  # fmt: skip


SIZES = ((8, 8), (8, 16), (16, 16))


@pytest.mark.parametrize("init", ["tree", "random"])
def test_flops_of_a_search_grow_linearly_with_the_queries(init: str) -> None:
    key = normal_map(1, 3, 16, 16)
    small, double, fourfold = (
        flops(lambda size=size: psal.patch_match(normal_map(1, 3, *size), key, init=init))  # type: ignore[misc]
        for size in SIZES
    )
    assert small > 0
    assert double - small == pytest.approx((fourfold - double) / 2, rel=0.05)


def test_a_warm_start_counts_its_matches_and_the_steps_of_every_sweep() -> None:
    """k at random, those given, and per sweep the neighbor's k along each axis and one random step."""
    query, key, start = normal_map(2, 3, 7, 5), normal_map(2, 3, 6, 8), random_matches(2, 4, (7, 5), (6, 8))
    compared = 2 + 4 + 3 * (2 * 2 + 1)
    expected = 2 * 35 * compared * 3 * 3 * 9  # batch, queries, comparisons, l2, channels, patch
    assert expected == flops(lambda: psal.patch_match(query, key, patch_size=3, neighbors=2, iterations=3, init=start))


def test_a_tree_counts_the_descriptors_of_its_leaves() -> None:
    """Every other query compares descriptors with its own leaf and one per axis."""
    query, key = normal_map(2, 3, 7, 5), normal_map(2, 3, 6, 8)
    compared = 2 + (1 + 3) * (2 * 2 + 1)
    leaves = 3 * LEAF_SIZE * 3 * DESCRIPTOR / 2
    assert 2 * 35 * (compared * 3 * 3 * 9 + leaves) == flops(
        lambda: psal.patch_match(query, key, patch_size=3, neighbors=2, iterations=3, init="tree")
    )


@pytest.mark.parametrize("patch_size", [1, 3])
def test_attention_counts_a_product_and_a_sum_for_every_value_of_the_window(patch_size: int) -> None:
    matches = random_matches(2, 3, (4, 9), (7, 6), dtype=torch.float32)
    value = normal_map(2, 5, 7, 6).requires_grad_()
    forward = 2 * (2 * 3 * 36) * patch_size**2 * 5
    assert flops(lambda: psal.aggregate(matches, value, patch_size=patch_size)) == forward
    both = flops(lambda: torch.autograd.grad(psal.aggregate(matches, value, patch_size=patch_size).sum(), value))
    assert both == 3 * forward  # backward: once for the values, once for the scores


def test_the_backward_pass_of_a_search_counts_a_product_and_a_sum_for_both_patches() -> None:
    image = normal_map(1, 3, 9, 8).requires_grad_()
    forward = flops(lambda: psal.patch_match(image, image, init="random"))
    both = flops(lambda: torch.autograd.grad(psal.patch_match(image, image, init="random").score.sum(), image))
    assert both - forward == 2 * 2 * (3 * 72) * 3 * 49
