import copy
import inspect
import pickle
from dataclasses import fields
from typing import Any

import pytest
import torch
from support.maps import gradients, normal_map, random_mask
from support.tolerances import assert_close, assert_same_bits
from torch import Tensor, nn

import psal
from psal.options import SearchOptions

ARGUMENTS: dict[str, Any] = {
    "patch_size": (3, 5),
    "neighbors": 2,
    "iterations": 2,
    "similarity": "cosine",
    "aggregate": True,
    "temperature": 0.5,
    "init": "random",
    "padding_mode": "reflect",
    "seed": 7,
    "backend": "native",
}


def inputs() -> list[torch.Tensor]:
    return [normal_map(1, 4, *size, seed=seed) for seed, size in enumerate([(9, 8), (7, 10), (7, 10)])]


def trained_block(**arguments: Any) -> psal.PatchAttentionBlock:
    """A block whose last projection is no longer zero."""
    torch.manual_seed(3)
    block = psal.PatchAttentionBlock(**{"channels": 4, "patch_size": 3, "temperature": 5.0, "seed": 1, **arguments})
    nn.init.normal_(block.out.weight)
    return block


@pytest.mark.parametrize("arguments", [{}, {"seed": 2}, ARGUMENTS], ids=["default", "seed", "all"])
def test_the_layer_equals_the_function(arguments: dict[str, Any]) -> None:
    key_mask, query_mask = random_mask(1, (7, 10), seed=1), random_mask(1, (9, 8), seed=2)
    torch.manual_seed(5)
    actual = psal.PatchAttention(**arguments)(*inputs(), key_mask=key_mask, query_mask=query_mask)
    torch.manual_seed(5)
    expected = psal.patch_attention(*inputs(), key_mask=key_mask, query_mask=query_mask, **arguments)
    assert_same_bits(actual, expected)


def test_an_init_passed_to_forward_replaces_the_layer_s_own() -> None:
    query, key, value = inputs()
    exact = psal.exact_match(query, key)
    layer = psal.PatchAttention(init="random", iterations=0, seed=1)
    assert_close(layer(query, key, value, init=exact), psal.attend(exact, value))


def test_function_and_layer_have_the_same_arguments_and_defaults() -> None:
    of_function = inspect.signature(psal.patch_attention).parameters
    of_layer = inspect.signature(psal.PatchAttention).parameters
    at_the_call = {"query", "key", "value", "key_mask", "query_mask", "return_matches"}
    assert of_layer.keys() == of_function.keys() - at_the_call
    assert {n: p.default for n, p in of_layer.items()} == {n: of_function[n].default for n in of_layer}
    options = {field.name: field.default for field in fields(SearchOptions)}
    assert options == {name: of_layer[name].default for name in of_layer if name not in ("aggregate", "temperature")}


def test_options_of_a_layer_can_be_read_and_changed() -> None:
    layer = psal.PatchAttention(**ARGUMENTS)
    assert {name: getattr(layer, name) for name in ARGUMENTS} == ARGUMENTS
    layer.seed = 8
    assert layer.options.seed == layer.seed == 8
    with pytest.raises(ValueError, match="neighbors must be at least 1, got 0"):
        layer.neighbors = 0


def test_the_layer_has_no_weights() -> None:
    layer = psal.PatchAttention()
    assert not list(layer.parameters())
    assert not layer.state_dict()


def test_the_layer_shows_its_arguments() -> None:
    assert repr(psal.PatchAttention()) == "PatchAttention(patch_size=7, neighbors=3)"
    assert repr(psal.PatchAttention(**ARGUMENTS)) == (
        "PatchAttention(patch_size=(3, 5), neighbors=2, iterations=2, similarity='cosine', aggregate=True, "
        "temperature=0.5, init='random', padding_mode='reflect', seed=7, backend='native')"
    )


@pytest.mark.parametrize("copier", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))], ids=["deepcopy", "pickle"])
def test_a_copied_layer_computes_the_same(copier: Any) -> None:
    layer = psal.PatchAttention(**ARGUMENTS)
    duplicate = copier(layer)
    assert repr(duplicate) == repr(layer)
    assert_same_bits(duplicate(*inputs()), layer(*inputs()))


@pytest.mark.parametrize("copier", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))], ids=["deepcopy", "pickle"])
def test_a_copied_block_computes_the_same(copier: Any) -> None:
    block, x = trained_block(heads=2), normal_map(1, 4, 7, 6)
    assert_same_bits(copier(block)(x), block(x))


def test_the_state_of_a_block_can_be_loaded_into_another() -> None:
    block, x = trained_block(), normal_map(1, 4, 7, 6)
    other = psal.PatchAttentionBlock(4, patch_size=3, temperature=5.0, seed=1)
    other.load_state_dict(block.state_dict())
    assert_same_bits(other(x), block(x))


@pytest.mark.parametrize(("dimensions", "size"), [(1, (9,)), (2, (7, 6)), (3, (3, 4, 5))])
@pytest.mark.parametrize("heads", [1, 2])
def test_a_new_block_changes_nothing(dimensions: int, size: tuple[int, ...], heads: int) -> None:
    x = normal_map(2, 4, *size)
    block = psal.PatchAttentionBlock(4, heads, dimensions=dimensions, patch_size=3)
    assert_same_bits(block(x), x)


def test_each_head_attends_by_itself() -> None:
    """With as many neighbors as keys the search is exhaustive, so heads can be computed one by one."""
    block, x = trained_block(heads=2, neighbors=20), normal_map(2, 4, 5, 4)
    query, key, value = block.query(x), block.key(x), block.value(x)
    heads = [
        psal.patch_attention(query[:, at], key[:, at], value[:, at], patch_size=3, neighbors=20, temperature=5.0)
        for at in (slice(0, 2), slice(2, 4))
    ]
    expected = x + block.out(torch.cat([head for head in heads if isinstance(head, torch.Tensor)], 1))
    assert_close(block(x).detach(), expected.detach())


@pytest.mark.parametrize("heads", [1, 2])
def test_the_block_passes_masks_to_each_head(heads: int) -> None:
    """Masked keys are never read: a NaN in them does not spread."""
    block = trained_block(heads=heads, patch_size=1)
    x, reference = normal_map(2, 4, 5, 6), normal_map(2, 4, 7, 4)
    key_mask, query_mask = random_mask(2, (7, 4), seed=1), random_mask(2, (5, 6), seed=2)
    out = block(x, reference.where(key_mask, torch.nan), key_mask=key_mask, query_mask=query_mask)
    assert out.isfinite().all()
    masked = ~query_mask.expand_as(x)
    bias = block.out.bias
    assert bias is not None
    assert_same_bits(out[masked].detach(), (x + bias.reshape(1, -1, 1, 1))[masked].detach())


def test_the_block_attends_to_a_map_of_another_size() -> None:
    block, x, reference = trained_block(), normal_map(2, 4, 5, 6), normal_map(2, 4, 9, 3, seed=1)
    attended = psal.patch_attention(
        block.query(x), block.key(reference), block.value(reference), patch_size=3, temperature=5.0, seed=1
    )
    assert_same_bits(block(x, reference).detach(), (x + block.out(attended)).detach())


@pytest.mark.parametrize("aggregate", [False, True])
def test_gradients_reach_all_parameters(aggregate: bool) -> None:
    block = trained_block(heads=2, aggregate=aggregate)
    block(normal_map(1, 4, 7, 6)).square().sum().backward()
    without = [name for name, p in block.named_parameters() if p.grad is None or not p.grad.any()]
    assert without == []


def test_gradients_reach_the_input_of_a_block() -> None:
    _, grad = gradients(trained_block(), normal_map(1, 4, 7, 6))
    assert grad.any()


def test_autocast_goes_through_the_block_forward_and_backward() -> None:
    """With attention to all keys, so that rounded features change no match."""
    block, x = trained_block(neighbors=20, heads=2), normal_map(1, 4, 5, 4)
    exact = gradients(block, x)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        rounded = gradients(block, x)
    for actual, expected in zip(rounded, exact, strict=True):
        assert_close(actual.bfloat16(), expected.bfloat16())


def test_autocast_does_not_change_the_types_of_the_function() -> None:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out, matches = psal.patch_attention(*inputs(), return_matches=True)
    assert (out.dtype, matches.score.dtype) == (torch.float32, torch.float32)


class WeightedDistance(nn.Module):
    """A similarity that is learned."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))

    def forward(self, query_patches: Tensor, key_patches: Tensor) -> Tensor:
        scores: Tensor = -self.weight * (query_patches - key_patches).square().sum(-1)
        return scores


def test_the_options_are_listed_as_attributes() -> None:
    assert {field.name for field in fields(SearchOptions)} <= set(dir(psal.PatchAttention()))


def test_a_learned_similarity_is_part_of_the_layer() -> None:
    layer = psal.PatchAttention(3, 2, similarity=WeightedDistance())
    block = psal.PatchAttentionBlock(4, patch_size=3, similarity=WeightedDistance())
    assert list(layer.state_dict()) == ["similarity.weight"]
    assert "attention.similarity.weight" in dict(block.named_parameters())
    copied = copy.deepcopy(layer).double().eval()
    similarity = copied.similarity
    assert isinstance(similarity, WeightedDistance)
    assert similarity.weight.dtype == torch.float64
    assert not similarity.training
    assert copied.options.similarity is similarity
    image = normal_map(1, 2, 6, 7)
    layer(image, image.flip(2), image).square().sum().backward()
    assert layer.similarity.weight.grad is not None
    layer.similarity = "l2"
    assert list(layer.parameters()) == []
