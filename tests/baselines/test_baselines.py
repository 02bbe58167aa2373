"""Each layer against the mathematics that defines it."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from support.maps import dense_patches, dense_scores, gradients, normal_map
from support.tolerances import RELATIVE, assert_all_close, assert_close, assert_same_bits
from torch import Tensor, nn

import psal
from psal.baselines import FullAttention, LinearAttention, LocalAttention, PerformerAttention, ReformerAttention
from psal.baselines.full import METHODS

SIMILARITIES = ("l2", "dot", "cosine")
LAYERS: dict[str, Callable[[], nn.Module]] = {
    "full": lambda: FullAttention(3, method="materialized"),
    "full chunked": lambda: FullAttention(3, method="chunked"),
    "full sdpa": lambda: FullAttention(3, method="sdpa"),
    "full strided": lambda: FullAttention(3, stride=2),
    "local": lambda: LocalAttention(3, window=4),
    "linear": lambda: LinearAttention(3),
    "performer": lambda: PerformerAttention(2, 3, features=40, seed=0),
    "reformer": lambda: ReformerAttention(3, rounds=2, chunk_size=16, seed=0),
}
every_layer = pytest.mark.parametrize("build", LAYERS.values(), ids=LAYERS)


def problem(
    batch: int = 2, channels: int = 2, dtype: torch.dtype = torch.float64, scale: float = 1.0
) -> tuple[Tensor, Tensor, Tensor]:
    """Query 9 × 13, key and value 11 × 7; the value has three channels."""
    query = normal_map(batch, channels, 9, 13, dtype=dtype, seed=1) * scale
    key = normal_map(batch, channels, 11, 7, dtype=dtype, seed=2) * scale
    return query, key, normal_map(batch, 3, 11, 7, dtype=dtype, seed=3)


def softmax_attention(scores: Tensor, value: Tensor, grid: tuple[int, int]) -> Tensor:
    """Attention with the matrix of all scores ``(B, N, M)``."""
    rows = torch.softmax(scores, -1) @ value.flatten(2).mT
    return rows.mT.reshape(*value.shape[:2], *grid)


@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize("method", METHODS)
def test_full_attention_is_the_softmax_over_all_pairs(method: str, similarity: str) -> None:
    def dense(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return softmax_attention(dense_scores(query, key, 3, similarity) / 0.7, value, (9, 13))

    layer = FullAttention(3, similarity=similarity, temperature=0.7, method=method)
    inputs = problem()
    assert_all_close(gradients(layer, *inputs), gradients(dense, *inputs), ("out", "query", "key", "value"))


@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_full_attention_gives_the_same_numbers_three_ways(similarity: str) -> None:
    inputs = problem(dtype=torch.float32)
    out = {
        method: gradients(FullAttention((3, 5), similarity=similarity, method=method, stride=2), *inputs)
        for method in METHODS
    }
    for method in METHODS[1:]:
        assert_all_close(out[method], out["materialized"], ("out", "query", "key", "value"))


def test_chunks_do_not_change_full_attention(monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = problem()
    whole = gradients(FullAttention(3, method="chunked"), *inputs)
    monkeypatch.setattr("psal.baselines.patches.CHUNK_ELEMENTS", 1)
    assert_all_close(gradients(FullAttention(3, method="chunked"), *inputs), whole, ("out", "query", "key", "value"))


@pytest.mark.parametrize("stride", [1, 2, 3, 20])
def test_stride_takes_part_of_the_keys(stride: int) -> None:
    query, key, value = problem()
    scores = dense_scores(query, key, 3, "l2").reshape(2, -1, 11, 7)[..., ::stride, ::stride].flatten(2)
    expected = softmax_attention(scores, value[..., ::stride, ::stride], (9, 13))
    assert_close(FullAttention(3, stride=stride)(query, key, value), expected)


def test_full_attention_is_patch_attention_with_all_keys() -> None:
    query, key, value = problem(batch=1)
    every = psal.attend(psal.exact_match(query, key, patch_size=3, neighbors=77), value)
    assert_close(FullAttention(3)(query, key, value), every)


@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_local_attention_with_a_window_over_everything_is_full_attention(similarity: str) -> None:
    inputs = problem()
    local = LocalAttention(3, window=30, similarity=similarity, temperature=0.7)
    full = FullAttention(3, similarity=similarity, temperature=0.7)
    assert_all_close(gradients(local, *inputs), gradients(full, *inputs), ("out", "query", "key", "value"))


@pytest.mark.parametrize("window", [1, 4, 7])
def test_local_attention_is_full_attention_without_what_is_far(window: int) -> None:
    query = normal_map(1, 2, 19, 37, dtype=torch.float64, seed=1)
    key, value = (normal_map(1, c, 19, 37, dtype=torch.float64, seed=c) for c in (2, 3))
    row, column = (x.flatten() for x in torch.meshgrid(torch.arange(19), torch.arange(37), indexing="ij"))
    down, right = row - row[:, None], column - column[:, None]
    low, high = -(window // 2), window - window // 2
    near = (down >= low) & (down < high) & (right >= low) & (right < high)
    expected = softmax_attention(dense_scores(query, key, 3, "l2").masked_fill(~near, -math.inf), value, (19, 37))
    assert_close(LocalAttention(3, window=window)(query, key, value), expected)


def test_linear_attention_is_its_quadratic_form(monkeypatch: pytest.MonkeyPatch) -> None:
    def quadratic(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        q, k = (nn.functional.elu(dense_patches(x, 3)) + 1 for x in (query, key))
        return softmax_attention((q @ k.mT).log(), value, (9, 13))

    inputs = problem()
    monkeypatch.setattr("psal.baselines.patches.CHUNK_ELEMENTS", 500)  # several bands
    assert_all_close(
        gradients(LinearAttention(3), *inputs), gradients(quadratic, *inputs), ("out", "query", "key", "value")
    )


def test_the_error_of_performer_falls_as_its_features_grow() -> None:
    """Guards against frames that are not uniform, as QR gives them: the error then stops falling at some thousands."""
    inputs = problem(batch=1, scale=0.4)
    expected = FullAttention(3, similarity="dot", temperature=math.sqrt(18))(*inputs)

    def error(features: int) -> float:
        layers = [PerformerAttention(2, 3, features=features, seed=seed) for seed in range(8)]
        return float(torch.stack([(layer(*inputs) - expected).square().mean() for layer in layers]).mean().sqrt())

    errors = [error(features) for features in (16, 128, 1024, 8192)]
    assert errors[0] > 2 * errors[1] > 4 * errors[2] > 8 * errors[3]  # by √8 each time in the end


def test_features_of_performer_are_orthogonal_in_blocks_and_as_many_as_asked_for() -> None:
    from psal.baselines.performer import orthogonal_features

    features = orthogonal_features(6, 15, seed=0)
    assert features.shape == (15, 6)
    for block in (features[:6], features[6:12], features[12:]):
        products = block @ block.T
        assert (products - products.diag().diag()).abs().max() < RELATIVE[torch.float32] * products.max()
    assert features.norm(dim=1).unique().numel() == 15


@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize("rounds", [1, 3])
def test_reformer_with_everything_in_one_bucket_is_full_attention(similarity: str, rounds: int) -> None:
    inputs = problem()
    reformer = ReformerAttention(
        3, rounds=rounds, buckets=1, chunk_size=200, similarity=similarity, temperature=0.7, seed=0
    )
    full = FullAttention(3, similarity=similarity, temperature=0.7)
    assert_all_close(gradients(reformer, *inputs), gradients(full, *inputs), ("out", "query", "key", "value"))


def test_reformer_attends_only_to_keys_of_the_query_s_bucket() -> None:
    """Patches of two directions: keys of the other one have another value, which must not come through."""
    query = torch.where(torch.arange(12) % 2 == 0, 1.0, -1.0).expand(1, 1, 10, 12)
    key = torch.where(torch.arange(8) < 4, 1.0, -1.0).expand(1, 1, 10, 8)
    layer = ReformerAttention(1, rounds=1, buckets=2, chunk_size=300, temperature=1e3, seed=0)
    assert_same_bits(layer(query, key, key).sign(), query)


def test_reformer_finds_keys_in_chunks_beside_its_own() -> None:
    query, key, value = problem(batch=1)
    wide = ReformerAttention(3, rounds=1, buckets=1, chunk_size=194, seed=0)(query, key, value)
    parts = ReformerAttention(3, rounds=1, buckets=1, chunk_size=97, seed=0)(query, key, value)
    assert_close(parts, wide)


def test_a_query_without_any_key_in_reach_gets_zero_from_reformer() -> None:
    """One key among 117 queries, in chunks of two: it comes second in the only bucket, so that few queries meet it."""
    query, key, value = (x[..., :1, :1] if i else x for i, x in enumerate(problem(batch=1)))
    out = ReformerAttention(3, rounds=1, buckets=1, chunk_size=2, seed=0)(query, key, value).flatten(2)
    assert_close(out[..., :3], value.flatten(2).expand(-1, -1, 3))
    assert out[..., 3:].count_nonzero() == 0


def test_reformer_mixes_queries_and_keys_of_a_large_bucket() -> None:
    """Guards against sorting all queries of a bucket before its keys: most would meet none."""
    query, key, value = problem()
    out = ReformerAttention(3, rounds=1, buckets=1, chunk_size=8, seed=0)(query, key, value)
    assert out.count_nonzero() == out.numel()


@every_layer
def test_every_layer_has_the_gradients_of_finite_differences(build: Callable[[], nn.Module]) -> None:
    inputs = [
        normal_map(1, 2, *size, dtype=torch.float64, seed=seed).requires_grad_()
        for seed, size in enumerate([(3, 4), (4, 3), (4, 3)])
    ]
    assert torch.autograd.gradcheck(build(), inputs)


@every_layer
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_every_layer_keeps_the_value_s_type(build: Callable[[], nn.Module], dtype: torch.dtype) -> None:
    inputs = problem(dtype=dtype)
    out = build()(*inputs)
    assert out.shape == (2, 3, 9, 13)
    assert out.dtype == dtype
    assert_close(out, build()(*(x.float() for x in inputs)).to(dtype))


@every_layer
def test_batch_elements_do_not_see_each_other(build: Callable[[], nn.Module]) -> None:
    inputs = problem()
    together = build()(*inputs)
    for i in range(2):
        assert_close(build()(*(x[i : i + 1] for x in inputs)), together[i : i + 1])


@every_layer
def test_strides_do_not_matter(build: Callable[[], nn.Module]) -> None:
    inputs = problem()
    assert_close(build()(*(x.to(memory_format=torch.channels_last) for x in inputs)), build()(*inputs))


@every_layer
@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (((1, 2, 8, 8), (1, 3, 8, 8), (1, 3, 8, 8)), "key and query must have the same batch size, channels"),
        (((1, 2, 8, 8), (2, 2, 8, 8), (2, 2, 8, 8)), "key and query must have the same batch size, channels"),
        (((1, 2, 8, 8), (1, 2, 8, 8), (1, 2, 8, 9)), "key and value must be on one grid"),
        (((1, 2, 8), (1, 2, 8), (1, 2, 8)), r"query must be \(B, C, H, W\)"),
    ],
)
def test_maps_that_do_not_fit_are_named(
    build: Callable[[], nn.Module], shapes: tuple[tuple[int, ...], ...], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        build()(*(torch.rand(shape) for shape in shapes))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: FullAttention(4), "patch_size must be odd and positive, got 4"),
        (lambda: FullAttention(stride=0), "stride must be at least 1, got 0"),
        (lambda: FullAttention(method="flash"), "method must be one of 'materialized', 'chunked', 'sdpa', got 'flash'"),
        (lambda: FullAttention(similarity="l1"), "similarity must be one of"),
        (lambda: FullAttention(temperature=0.0), "temperature must be positive"),
        (lambda: LocalAttention(window=0), "window must be at least 1, got 0"),
        (lambda: LinearAttention(padding_mode="wrap"), "padding_mode must be one of"),
        (lambda: PerformerAttention(3, features=0), "features must be at least 1, got 0"),
        (lambda: ReformerAttention(buckets=6), "buckets must be a power of two, got 6"),
        (lambda: ReformerAttention(rounds=0), "rounds must be at least 1, got 0"),
    ],
)
def test_wrong_arguments_are_named(build: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build()


def test_the_same_seed_gives_the_same_numbers() -> None:
    inputs = problem()
    for build in (partial(PerformerAttention, 2, 3), partial(ReformerAttention, 3)):
        assert_same_bits(build(seed=5)(*inputs), build(seed=5)(*inputs))
        assert not build(seed=5)(*inputs).equal(build(seed=6)(*inputs))


def test_a_loaded_performer_gives_the_numbers_of_the_saved_one() -> None:
    """Guards against features that are drawn anew after a network was trained with others."""
    inputs = problem()
    saved, loaded = PerformerAttention(2, 3), PerformerAttention(2, 3)
    loaded.load_state_dict(saved.state_dict())
    assert_same_bits(loaded(*inputs), saved(*inputs))
    with pytest.raises(ValueError, match="query must have 2 channels"):
        saved(*(x[:, :1] for x in inputs))


def test_layers_show_their_arguments() -> None:
    shown = "LocalAttention(patch_size=(3, 3), padding_mode='replicate', window=4, similarity='l2', temperature=1.0)"
    assert repr(LocalAttention(3, window=4)) == shown
