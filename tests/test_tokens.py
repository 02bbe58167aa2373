"""Attention of tokens on a grid, against scaled dot-product attention."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from support.tolerances import assert_all_close, assert_close
from torch import Tensor

import psal
from psal.tokens import TokenAttention, token_attention


def tokens(heads: int, grid: tuple[int, ...], channels: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(2, heads, torch.Size(grid).numel(), channels, generator=generator)


def valid_arguments() -> dict[str, Any]:
    x = tokens(1, (5, 6), 4)
    return {"query": x, "key": x, "value": x, "grid": (5, 6)}


@pytest.mark.parametrize("grid", [(35,), (5, 7), (3, 4, 2)])
@pytest.mark.parametrize("scale", [None, 0.7])
def test_with_all_keys_it_is_scaled_dot_product_attention(grid: tuple[int, ...], scale: float | None) -> None:
    query, key, value = (tokens(3, grid, channels, seed) for seed, channels in enumerate((6, 6, 4)))
    out = token_attention(query, key, value, grid, neighbors=key.shape[2], scale=scale)
    assert_close(out, F.scaled_dot_product_attention(query, key, value, scale=scale))


def test_with_few_keys_it_averages_over_the_best_of_them() -> None:
    query, key, value = tokens(2, (9, 11), 8, 0), tokens(2, (7, 6), 8, 1), tokens(2, (7, 6), 5, 2)
    score = query @ key.mT / 8**0.5  # [B, heads, N, M]
    best = score.topk(4, dim=3)
    weights = torch.zeros_like(score).scatter(3, best.indices, best.values.softmax(3))
    out = token_attention(query, key, value, (9, 11), (7, 6), iterations=20)
    agree = (out - weights @ value).abs().amax(3) < 1e-4
    assert agree.float().mean() > 0.95  # the search is not exhaustive


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_the_normalizer_joins_attention_to_further_keys(dtype: torch.dtype) -> None:
    query, key, value = ((3 * tokens(2, (5, 8), 6, seed)).to(dtype) for seed in range(3))
    parts = [
        token_attention(query, key[:, :, part], value[:, :, part], (5, 8), (2, 10), neighbors=20, return_lse=True)
        for part in (slice(0, 20), slice(20, 40))
    ]
    lse = torch.stack([normalizer for _, normalizer in parts])  # [2, B, heads, N]
    assert lse.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    score = query.to(lse.dtype) @ key.to(lse.dtype).mT / 6**0.5
    assert_close(lse.logsumexp(0), score.logsumexp(3))
    joined = sum(weight.unsqueeze(3) * out for weight, (out, _) in zip(lse.softmax(0), parts, strict=True))
    assert isinstance(joined, Tensor)
    assert_close(joined.to(dtype), F.scaled_dot_product_attention(query, key, value))


def test_the_normalizer_carries_gradients() -> None:
    query, key = inputs = [tokens(2, (6, 5), 4, seed).double().requires_grad_() for seed in range(2)]
    _, lse = token_attention(query, key, key, (6, 5), neighbors=30, return_lse=True)
    found = torch.autograd.grad(lse.square().sum(), inputs)
    expected = torch.autograd.grad((query @ key.mT / 2).logsumexp(3).square().sum(), inputs)
    assert_all_close(found, expected, ("query", "key"))


def test_gradients_reach_query_key_and_value() -> None:
    query, key, value = inputs = [tokens(1, (6, 5), 4, seed).double().requires_grad_() for seed in range(3)]
    out = token_attention(query, key, value, (6, 5), neighbors=30)
    expected = F.scaled_dot_product_attention(query, key, value)
    weights = torch.rand_like(out)
    for found, wanted in zip(
        torch.autograd.grad((out * weights).sum(), inputs),
        torch.autograd.grad((expected * weights).sum(), inputs),
        strict=True,
    ):
        assert_close(found, wanted)


def test_the_layer_splits_channels_into_heads() -> None:
    x = torch.randn(2, 30, 8)
    layer = TokenAttention((5, 6), heads=2, neighbors=30)
    heads = x.reshape(2, 30, 2, 4).transpose(1, 2)
    expected = F.scaled_dot_product_attention(heads, heads, heads).transpose(1, 2).flatten(2)
    assert_close(layer(x, x, x), expected)
    network = torch.nn.ModuleDict({"attention": TokenAttention((5, 6))})
    assert psal.swap_attention_(network, layer) == ["attention"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"grid": (5, 5)}, r"query has 30 tokens, which do not fill a grid of \(5, 5\)"),
        ({"key_grid": (5, 5)}, r"key has 30 tokens, which do not fill a grid of \(5, 5\)"),
        ({"scale": 0.0}, r"scale must be positive and finite, got 0\.0"),
        ({"scale": float("inf")}, r"scale must be positive and finite, got inf"),
        ({"value": tokens(3, (5, 6), 4)}, r"the same batch size and heads, got .*, \(2, 3, 30, 4\)"),
        ({"return_lse": True, "aggregate": True}, "return_lse works with aggregate=False alone"),
        ({"neighbors": 31}, "neighbors must not exceed the 30 keys"),
    ],
)
def test_wrong_arguments_are_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        token_attention(**valid_arguments() | arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"grid": 30}, r"the grid must be a sequence such as \(H, W\), got 30"),
        ({"grid": (5.0, 6)}, r"a size of the grid must be an int, got 5\.0"),
        ({"query": None}, "query must be a tensor"),
        ({"return_matches": True}, "return_matches is not an argument of token_attention"),
    ],
)
def test_arguments_of_a_wrong_type_are_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        token_attention(**valid_arguments() | arguments)


def test_tokens_without_heads_are_refused_by_the_function_and_odd_heads_by_the_layer() -> None:
    x = torch.rand(1, 30, 9)
    with pytest.raises(ValueError, match=r"query must be \(batch, heads, tokens, channels\), got \(1, 30, 9\)"):
        token_attention(x, x, x, (5, 6))
    with pytest.raises(ValueError, match="heads must divide channels, got 2 heads for 9 channels of query"):
        TokenAttention((5, 6), heads=2)(x, x, x)
