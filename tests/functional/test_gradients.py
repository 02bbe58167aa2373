"""Gradients against finite differences and the paper's formulas, and where they are zero or refused."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from support.maps import gradients, normal_map, random_mask, random_matches
from support.tolerances import assert_close, assert_same_bits
from torch import Tensor

import psal
from psal import ops
from psal.options import SearchOptions

SIMILARITIES = ("l2", "dot", "cosine")


def leaf(*shape: int, seed: int) -> Tensor:
    return normal_map(*shape, dtype=torch.float64, seed=seed).requires_grad_()


@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize("patch_size", [1, 3, (5, 3)])
@pytest.mark.parametrize(("init", "neighbors"), [("random", 2), ("tree", 9)])
def test_scores_have_the_gradients_of_finite_differences(
    similarity: str, patch_size: Any, init: str, neighbors: int
) -> None:
    def match(query: Tensor, key: Tensor) -> Tensor:
        return psal.patch_match(
            query, key, patch_size=patch_size, neighbors=neighbors, similarity=similarity, init=init, seed=3
        ).score

    assert torch.autograd.gradcheck(match, (leaf(1, 2, 2, 3, seed=1), leaf(1, 2, 3, 3, seed=2)))


@pytest.mark.parametrize("padding_mode", ["replicate", "reflect", "zeros"])
@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_scores_at_the_border_have_the_gradients_of_finite_differences(padding_mode: str, similarity: str) -> None:
    """With patches larger than the map, so that each pixel occurs many times in one patch."""

    def match(query: Tensor, key: Tensor) -> Tensor:
        return psal.exact_match(
            query, key, patch_size=5, neighbors=2, similarity=similarity, padding_mode=padding_mode
        ).score

    assert torch.autograd.gradcheck(match, (leaf(1, 2, 2, 3, seed=1), leaf(1, 2, 3, 2, seed=2)))


@pytest.mark.parametrize("sizes", [((4, 3), (3, 4)), ((5,), (4,)), ((2, 2, 2), (1, 2, 3))], ids=str)
@pytest.mark.parametrize("neighbors", [1, 3])
def test_attend_has_the_gradients_of_finite_differences(
    sizes: tuple[tuple[int, ...], tuple[int, ...]], neighbors: int
) -> None:
    sq, sk = sizes
    index, score = random_matches(2, neighbors, sq, sk)

    def attend(score: Tensor, value: Tensor) -> Tensor:
        return psal.attend(psal.Matches(index, score), value, temperature=0.7)

    assert torch.autograd.gradcheck(attend, (score.requires_grad_(), leaf(2, 2, *sk, seed=2)))


@pytest.mark.parametrize("sizes", [((4, 3), (3, 4)), ((5,), (4,)), ((2, 2, 2), (1, 2, 3))], ids=str)
@pytest.mark.parametrize("neighbors", [1, 3])
def test_aggregate_has_the_gradients_of_finite_differences(
    sizes: tuple[tuple[int, ...], tuple[int, ...]], neighbors: int
) -> None:
    sq, sk = sizes
    index, score = random_matches(2, neighbors, sq, sk)
    index = index.where(random_mask(2, sq, seed=5), -1)

    def aggregate(score: Tensor, value: Tensor) -> Tensor:
        return psal.aggregate(psal.Matches(index, score), value, patch_size=3, temperature=0.7)

    assert torch.autograd.gradcheck(aggregate, (score.requires_grad_(), leaf(2, 2, *sk, seed=2)))


@pytest.mark.parametrize("channels", [9, 17, 40])
@pytest.mark.parametrize("patch_size", [1, 3])
def test_values_of_many_channels_have_the_gradients_of_finite_differences(channels: int, patch_size: int) -> None:
    index, score = random_matches(1, 2, (3, 4), (4, 3))
    score.requires_grad_()

    def aggregate(score: Tensor) -> Tensor:
        value = leaf(1, channels, 4, 3, seed=2).detach()
        return psal.aggregate(psal.Matches(index, score), value, patch_size=patch_size, temperature=0.7)

    assert torch.autograd.gradcheck(aggregate, (score,))


@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize("aggregate", [False, True])
def test_attention_has_the_gradients_of_finite_differences(similarity: str, aggregate: bool) -> None:
    def attention(query: Tensor, key: Tensor, value: Tensor) -> Any:
        return psal.patch_attention(
            query, key, value, patch_size=3, neighbors=3, similarity=similarity, aggregate=aggregate,
            temperature=10.0, seed=3, query_mask=random_mask(1, (3, 4), seed=4), init="random",
        )  # fmt: skip

    inputs = leaf(1, 2, 3, 4, seed=1), leaf(1, 2, 4, 3, seed=2), leaf(1, 2, 4, 3, seed=3)
    assert torch.autograd.gradcheck(attention, inputs)


@pytest.mark.parametrize("similarity", ["l2", "dot"])
def test_attention_has_the_gradients_that_the_paper_derives(similarity: str) -> None:
    """Scalar query, key and value, patches of one pixel: the paper's three explicit formulas.

    With S_ij = s(Q_i, K_j) for j in ψ(i) and A the softmax of its rows, ∂A_il/∂S_ij = A_il (1{j=l} − A_ij), so

        ∂(AV)_i/∂V_j = A_ij
        ∂(AV)_i/∂Q_j = 1{i=j} Σ_l A_il V_l [∂S_il/∂Q_i − Σ_j' A_ij' ∂S_ij'/∂Q_i]
        ∂(AV)_i/∂K_j = 1{j∈ψ(i)} ∂S_ij/∂K_j Σ_l A_il [1{j=l} − A_ij] V_l

    The paper prints A_il in place of A_ij in the last bracket; the line above shows that it is A_ij.
    """
    n, m = 6, 7
    query, key, value = (leaf(1, 1, size, seed=seed) for seed, size in enumerate((n, m, m)))
    matches = psal.patch_match(query, key, patch_size=1, similarity=similarity, seed=0)
    out = psal.attend(matches, value)[0, 0]
    jacobians = torch.autograd.functional.jacobian(  # type: ignore[no-untyped-call]
        lambda q, k, v: psal.attend(psal.patch_match(q, k, patch_size=1, similarity=similarity, seed=0), v)[0, 0],
        (query, key, value),
    )

    q, k, v = (x.detach()[0, 0] for x in (query, key, value))
    linked = torch.zeros(n, m, dtype=torch.bool).scatter(1, matches.index[0].T, True)  # j in ψ(i)
    if similarity == "l2":
        scores, by_query, by_key = -((q[:, None] - k).square()), -2 * (q[:, None] - k), 2 * (q[:, None] - k)
    else:
        scores, by_query, by_key = q[:, None] * k, k.expand(n, m), q[:, None].expand(n, m)
    weight = scores.masked_fill(~linked, -torch.inf).softmax(1)  # A
    to_query, to_key = torch.zeros(n, n, dtype=torch.float64), torch.zeros(n, m, dtype=torch.float64)
    for i in range(n):
        mean = (weight[i] * by_query[i]).sum()
        to_query[i, i] = (weight[i] * v * (by_query[i] - mean)).sum()
        for j in range(m):
            to_key[i, j] = linked[i, j] * by_key[i, j] * sum(
                weight[i, p] * (int(j == p) - weight[i, j]) * v[p] for p in range(m)
            )  # fmt: skip

    assert_close(out.detach(), weight @ v)
    for jacobian, expected in zip(jacobians, (to_query, to_key, weight), strict=True):
        assert_close(jacobian[:, 0, 0], expected)


@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize("channels", [1, 2, 5, 17])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_with_one_neighbor_attend_sends_no_gradient_to_query_and_key(
    similarity: str, channels: int, dtype: torch.dtype
) -> None:
    """Not even rounding errors: the only weight is 1 for any score."""
    _, grad_query, grad_key, grad_value = gradients(
        lambda q, k, v: psal.patch_attention(q, k, v, patch_size=3, neighbors=1, similarity=similarity, seed=0),
        normal_map(1, 2, 7, 6, dtype=dtype, seed=1),
        normal_map(1, 2, 5, 8, dtype=dtype, seed=2),
        normal_map(1, channels, 5, 8, dtype=dtype, seed=3),
    )
    assert_same_bits(grad_query, torch.zeros_like(grad_query))
    assert_same_bits(grad_key, torch.zeros_like(grad_key))
    assert grad_value.any()


def test_with_one_neighbor_aggregate_still_sends_gradients_to_query_and_key() -> None:
    _, grad_query, grad_key, _ = gradients(
        lambda q, k, v: psal.patch_attention(q, k, v, patch_size=3, neighbors=1, aggregate=True, temperature=20.0),
        normal_map(1, 2, 7, 6, seed=1),
        normal_map(1, 2, 5, 8, seed=2),
        normal_map(1, 2, 5, 8, seed=3),
    )
    assert grad_query.any()
    assert grad_key.any()


@pytest.mark.parametrize("needed", [0, 1, 2])
@pytest.mark.parametrize("aggregate", [False, True])
def test_a_gradient_to_one_input_alone_is_the_same(needed: int, aggregate: bool) -> None:
    """Guards against a backward pass that assumes that all inputs require gradients."""

    def attention(*inputs: Tensor) -> Any:
        return psal.patch_attention(*inputs, patch_size=3, aggregate=aggregate, temperature=10.0, seed=3)

    inputs = [normal_map(1, 2, 5, 6, seed=seed) for seed in range(3)]
    expected = gradients(attention, *inputs)[1 + needed]
    actual = gradients(lambda x: attention(*inputs[:needed], x, *inputs[needed + 1 :]), inputs[needed])[1]
    assert_same_bits(actual, expected)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: psal.patch_match(x, x.flip(3), patch_size=3, seed=0).score,
        lambda x: psal.exact_match(x, x.flip(3), patch_size=3).score,
        lambda x: psal.attend(random_matches(1, 2, (4, 5), (4, 5)), x),
        lambda x: psal.aggregate(random_matches(1, 2, (4, 5), (4, 5)), x, patch_size=3),
    ],
    ids=["patch_match", "exact_match", "attend", "aggregate"],
)
def test_second_derivatives_are_refused(function: Callable[[Tensor], Tensor]) -> None:
    """Guards against a second derivative that is silently zero."""
    x = leaf(1, 2, 4, 5, seed=1)
    (gradient,) = torch.autograd.grad(function(x).square().sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="psal has no second derivatives"):
        torch.autograd.grad(gradient.square().sum(), x)


def test_indices_carry_no_gradient() -> None:
    image = leaf(1, 2, 4, 5, seed=1)
    matches = psal.patch_match(image, image, patch_size=3)
    assert matches.score.requires_grad
    assert not matches.index.requires_grad


@pytest.mark.parametrize("aggregate", [False, True])
def test_gradients_stay_finite_where_queries_are_masked(aggregate: bool) -> None:
    """Guards against −∞ scores of masked queries turning into NaN in the backward pass."""
    _, *grads = gradients(
        lambda q, k, v: psal.patch_attention(
            q, k, v, patch_size=3, aggregate=aggregate, query_mask=random_mask(1, (7, 6), fraction=0.3)
        ),
        *(normal_map(1, 2, 7, 6, seed=seed) for seed in range(3)),
    )
    assert all(grad.isfinite().all() for grad in grads)


@pytest.mark.parametrize("aggregate", [False, True])
def test_memory_saved_for_backward_does_not_grow_with_the_patch(aggregate: bool) -> None:
    def kept(patch_size: int) -> int:
        sizes: list[int] = []

        def pack(x: Tensor) -> Tensor:
            sizes.append(x.numel())
            return x

        inputs = [leaf(1, 2, 12, 11, seed=seed) for seed in range(3)]
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
            psal.patch_attention(*inputs, patch_size=patch_size, aggregate=aggregate)
        return sum(sizes)

    assert kept(9) == kept(1) > 0


@pytest.mark.parametrize("offset", [-1e6, -1e8, 1e6])
@pytest.mark.parametrize("patch_size", [1, 3])
def test_gradients_do_not_change_when_a_constant_is_added_to_all_scores(offset: float, patch_size: int) -> None:
    """Guards against weights from a rounded logsumexp, which are wrong by a third at scores of 10⁷."""
    index, _ = random_matches(1, 3, (5, 7), (6, 5))
    score = torch.tensor([0.0, 0.0, -8.0]).reshape(1, 3, 1, 1).expand(1, 3, 5, 7)

    def attend(score: Tensor, value: Tensor) -> Tensor:
        return psal.aggregate(psal.Matches(index, score), value, patch_size=patch_size)

    value = normal_map(1, 2, 6, 5)
    for found, expected in zip(gradients(attend, score + offset, value), gradients(attend, score, value), strict=True):
        assert_close(found, expected)


@pytest.mark.parametrize("contrast", [1.0, 0.01])
@pytest.mark.parametrize("offset", [0.0, 1000.0])
@pytest.mark.parametrize("padding_mode", ["replicate", "zeros"])
def test_an_offset_costs_no_digits_of_the_l2_gradient(padding_mode: str, offset: float, contrast: float) -> None:
    query, key = (contrast * torch.rand(1, 3, 21, 17) + offset for _ in range(2))
    index = psal.patch_match(query, key, seed=0).index

    def run(dtype: torch.dtype) -> tuple[Tensor, ...]:
        options = SearchOptions(padding_mode=padding_mode)
        return gradients(lambda q, k: ops.score(q, k, index, options), query.to(dtype), key.to(dtype))[1:]

    for found, expected in zip(run(torch.float32), run(torch.float64), strict=True):
        error = (found.double() - expected).norm() / expected.norm()
        assert error < 2e-6


def test_a_map_matched_with_itself_has_no_gradient() -> None:
    x = (torch.rand(1, 3, 21, 17) + 1000).requires_grad_()
    [grad] = torch.autograd.grad(psal.patch_match(x, x, neighbors=1, seed=0).score.sum(), x)
    assert grad.abs().max() == 0
