"""torch.compile and torch.export trace one graph for any size, forward and backward."""

from typing import Any

import pytest
import torch
from support.maps import gradients, normal_map, random_mask
from support.tolerances import assert_all_close, assert_same_bits
from torch import Tensor
from torch._dynamo.testing import CompileCounterWithBackend

import psal

NAMES = ("output", "query", "key", "value")


def maps_of(sq: tuple[int, int], sk: tuple[int, int]) -> list[Tensor]:
    return [normal_map(2, 3, *size, seed=seed) for seed, size in enumerate([sq, sk, sk])]


@pytest.mark.usefixtures("fresh_compiler")
@pytest.mark.parametrize("aggregate", [False, True])
@pytest.mark.parametrize("init", ["tree", "random"])
def test_a_compiled_function_computes_the_same_for_any_size(aggregate: bool, init: str) -> None:
    def attention(query: Tensor, key: Tensor, value: Tensor) -> Any:
        return psal.patch_attention(
            query, key, value, patch_size=3, temperature=20.0, seed=1, aggregate=aggregate, init=init
        )

    counter = CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(attention, fullgraph=True, dynamic=True, backend=counter)
    for sizes in [((9, 8), (7, 10)), ((12, 5), (6, 11))]:
        inputs = maps_of(*sizes)
        for actual, expected in zip(gradients(compiled, *inputs), gradients(attention, *inputs), strict=True):
            assert_same_bits(actual, expected)
    assert counter.frame_count == 1


@pytest.mark.usefixtures("fresh_compiler")
def test_masks_and_warm_starts_compile() -> None:
    mask = random_mask(2, (7, 10))

    def attention(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        matches = psal.patch_match(query, key, patch_size=3, seed=1, key_mask=mask)
        warm = psal.patch_match(query, key, patch_size=3, seed=2, key_mask=mask, init=matches)
        return psal.aggregate(warm, value, patch_size=3, temperature=20.0)

    compiled = torch.compile(attention, fullgraph=True, dynamic=True, backend="aot_eager")
    inputs = maps_of((9, 8), (7, 10))
    for actual, expected in zip(gradients(compiled, *inputs), gradients(attention, *inputs), strict=True):
        assert_same_bits(actual, expected)


@pytest.mark.usefixtures("fresh_compiler")
def test_a_compiled_search_refuses_a_mask_that_leaves_too_few_keys(fresh_compiler: None) -> None:
    image = normal_map(1, 2, 6, 5)
    mask = torch.zeros(1, 1, 6, 5, dtype=torch.bool)
    search = torch.compile(lambda m: psal.patch_match(image, image, key_mask=m).index, backend="aot_eager")
    mask[..., :3] = True
    assert search(mask).shape == (1, 3, 6, 5)
    with pytest.raises(ValueError, match="key_mask leaves no key"):
        search(torch.zeros_like(mask))


def test_without_a_seed_a_compiled_search_draws_from_the_generator_of_torch() -> None:
    def search(query: Tensor, key: Tensor) -> Tensor:
        return psal.patch_match(query, key, patch_size=3, init="random", iterations=0).index

    compiled = torch.compile(search, fullgraph=True, dynamic=True, backend="aot_eager")
    query, key, _ = maps_of((9, 8), (7, 10))
    torch.manual_seed(4)
    first, second = compiled(query, key), compiled(query, key)
    torch.manual_seed(4)
    again = compiled(query, key)
    assert_same_bits(again, first)
    assert not second.equal(first)


@pytest.mark.usefixtures("fresh_compiler")
@pytest.mark.parametrize("heads", [1, 2])
def test_a_compiled_block_computes_the_same(heads: int) -> None:
    block = psal.PatchAttentionBlock(4, heads, patch_size=3, seed=1, temperature=5.0)
    torch.nn.init.normal_(block.out.weight)
    compiled = torch.compile(block, fullgraph=True, dynamic=True, backend="aot_eager")
    for size in [(9, 8), (6, 11)]:
        x = normal_map(2, 4, *size)
        assert_all_close(gradients(compiled, x), gradients(block, x), ("output", "input"))


@pytest.mark.slow
@pytest.mark.usefixtures("fresh_compiler")
@pytest.mark.parametrize("heads", [1, 2])
def test_inductor_compiles_a_block(heads: int) -> None:
    """Guards against views between convolutions, whose strides inductor cannot order for symbolic sizes."""
    block = psal.PatchAttentionBlock(4, heads, patch_size=3, seed=1, temperature=5.0, neighbors=20)
    torch.nn.init.normal_(block.out.weight)
    compiled = torch.compile(block, fullgraph=True, dynamic=True)
    for size in [(5, 4), (7, 6)]:
        x = normal_map(2, 4, *size)
        assert_all_close(gradients(compiled, x), gradients(block, x), ("output", "input"))


@pytest.mark.slow
@pytest.mark.usefixtures("fresh_compiler")
def test_inductor_compiles_the_function() -> None:
    def attention(query: Tensor, key: Tensor, value: Tensor) -> Any:
        return psal.patch_attention(query, key, value, patch_size=3, temperature=20.0, seed=1, aggregate=True)

    compiled = torch.compile(attention, fullgraph=True, dynamic=True)
    for sizes in [((9, 8), (7, 10)), ((12, 5), (6, 11))]:
        inputs = maps_of(*sizes)
        assert_all_close(gradients(compiled, *inputs), gradients(attention, *inputs), NAMES)


@pytest.mark.parametrize("aggregate", [False, True])
def test_the_layer_can_be_exported(aggregate: bool) -> None:
    layer = psal.PatchAttention(patch_size=3, seed=1, aggregate=aggregate)
    inputs = tuple(maps_of((9, 8), (7, 10)))
    exported = torch.export.export(layer, inputs).module()
    assert_same_bits(exported(*inputs), layer(*inputs))


def test_an_exported_layer_takes_other_sizes() -> None:
    layer = psal.PatchAttention(patch_size=3, seed=1)
    query, key = ({2: torch.export.Dim(f"{name}_height"), 3: torch.export.Dim(f"{name}_width")} for name in "qk")
    exported = torch.export.export(
        layer, tuple(maps_of((9, 8), (7, 10))), dynamic_shapes=(query, key, key), strict=False
    ).module()
    other = maps_of((5, 13), (11, 6))
    assert_same_bits(exported(*other), layer(*other))


def test_the_block_can_be_exported() -> None:
    block = psal.PatchAttentionBlock(4, 2, patch_size=3, seed=1)
    torch.nn.init.normal_(block.out.weight)
    inputs = normal_map(2, 4, 9, 8), normal_map(2, 4, 7, 10, seed=1)
    exported = torch.export.export(block, inputs).module()
    assert_same_bits(exported(*inputs), block(*inputs))
