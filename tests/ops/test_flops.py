"""FLOPs of the ops as torch's FLOP counter reports them."""

from collections.abc import Callable

import pytest
import torch
from support.maps import normal_map, random_matches
from torch.utils.flop_counter import FlopCounterMode

import psal
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


@pytest.mark.parametrize("patch_size", [1, 3])
@pytest.mark.parametrize("backward", [False, True])
def test_flops_of_attention_grow_linearly_with_the_queries(patch_size: int, backward: bool) -> None:
    value = normal_map(1, 3, 16, 16).requires_grad_()

    def run(size: tuple[int, int]) -> None:
        matches = random_matches(1, 2, size, (16, 16), dtype=torch.float32)
        out = psal.aggregate(matches, value, patch_size=patch_size)
        if backward:
            torch.autograd.grad(out.sum(), value)

    small, double, fourfold = (flops(lambda size=size: run(size)) for size in SIZES)  # type: ignore[misc]
    assert small > 0
    assert (double, fourfold) == (2 * small, 4 * small)


def test_the_backward_pass_of_a_search_is_counted() -> None:
    image = normal_map(1, 3, 9, 8).requires_grad_()
    forward = flops(lambda: psal.patch_match(image, image, init="random"))
    both = flops(lambda: torch.autograd.grad(psal.patch_match(image, image, init="random").score.sum(), image))
    assert both > forward
