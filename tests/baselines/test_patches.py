"""What holds for every baseline."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from support.attention import problem
from support.maps import normal_map
from support.tolerances import assert_close, assert_same_bits
from torch import nn

from psal.baselines import FullAttention, LinearAttention, LocalAttention, PerformerAttention, ReformerAttention

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


@every_layer
def test_every_layer_has_the_gradients_of_finite_differences(build: Callable[[], nn.Module]) -> None:
    inputs = [
        normal_map(1, 2, *size, dtype=torch.float64, seed=seed).requires_grad_()
        for seed, size in enumerate([(3, 4), (4, 3), (4, 3)])
    ]
    assert torch.autograd.gradcheck(build(), inputs)


@every_layer
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_every_layer_returns_the_type_of_the_value(build: Callable[[], nn.Module], dtype: torch.dtype) -> None:
    inputs = problem(dtype=dtype)
    out = build()(*inputs)
    assert out.shape == (2, 3, 9, 13)
    assert out.dtype == dtype
    assert_close(out, build()(*(x.float() for x in inputs)).to(dtype))


@every_layer
def test_batch_elements_are_independent(build: Callable[[], nn.Module]) -> None:
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


def test_the_same_seed_gives_the_same_bits() -> None:
    inputs = problem()
    for build in (partial(PerformerAttention, 2, 3), partial(ReformerAttention, 3)):
        assert_same_bits(build(seed=5)(*inputs), build(seed=5)(*inputs))
        assert not build(seed=5)(*inputs).equal(build(seed=6)(*inputs))


def test_layers_show_their_arguments() -> None:
    shown = "LocalAttention(patch_size=(3, 3), padding_mode='replicate', window=4, similarity='l2', temperature=1.0)"
    assert repr(LocalAttention(3, window=4)) == shown
