import pytest
import torch
from support.maps import normal_map
from support.tolerances import assert_close, assert_same_bits
from torch import nn

import psal
from psal.baselines import FullAttention, LinearAttention
from psal.models import Colorizer


def network() -> nn.Module:
    torch.manual_seed(0)
    return Colorizer(FullAttention(3))


def test_the_network_computes_with_the_swapped_layer() -> None:
    model, gray, reference = network(), normal_map(1, 1, 9, 8, seed=1), normal_map(1, 3, 7, 9, seed=2)
    before = model(gray, reference)
    every = psal.PatchAttention(3, 63, seed=0)
    assert psal.swap_attention_(model, every) == ["attention"]
    assert model.attention is every
    assert_close(model(gray, reference), before)


def test_the_old_layers_are_restored_after_the_block() -> None:
    model, gray, reference = network(), normal_map(1, 1, 9, 8, seed=1), normal_map(1, 3, 7, 9, seed=2)
    layer, before = model.attention, model(gray, reference)
    with psal.swapped_attention(model, LinearAttention(3)) as names:
        assert names == ["attention"]
        assert not model(gray, reference).equal(before)
    assert model.attention is layer
    assert_same_bits(model(gray, reference), before)


def test_the_old_layers_are_restored_after_an_error() -> None:
    model = network()
    layer = model.attention
    with pytest.raises(ZeroDivisionError), psal.swapped_attention(model, LinearAttention(3)):
        _ = 1 / 0
    assert model.attention is layer


def test_a_factory_makes_a_layer_for_each_place() -> None:
    first, second = psal.PatchAttentionBlock(4), psal.PatchAttentionBlock(4)
    model = nn.Sequential(first, nn.ModuleList([second]))
    assert psal.swap_attention_(model, lambda: psal.PatchAttention(3, 1)) == ["0.attention", "1.0.attention"]
    assert first.attention is not second.attention
    shared = psal.PatchAttention(3, 2)
    psal.swap_attention_(model, shared)
    assert first.attention is shared
    assert second.attention is shared


def test_a_filter_chooses_by_module_and_name() -> None:
    model = nn.Sequential(psal.PatchAttentionBlock(4), psal.PatchAttentionBlock(4), nn.Identity())
    names = psal.swap_attention_(model, nn.Identity, filter_fn=lambda module, name: name.startswith("1"))
    assert names == ["1"]
    assert isinstance(model[1], nn.Identity)
    assert isinstance(model[0], psal.PatchAttentionBlock)


def test_nothing_to_swap_is_a_warning() -> None:
    with pytest.warns(UserWarning, match="no attention layer was swapped"):
        assert psal.swap_attention_(nn.Conv2d(1, 1, 1), nn.Identity()) == []


def test_the_replacement_takes_over_training_or_eval_mode() -> None:
    layer = nn.Dropout()
    psal.swap_attention_(network().eval(), layer)
    assert not layer.training


def test_a_replacement_that_is_not_a_module_is_refused_before_anything_is_swapped() -> None:
    model = network()
    with pytest.raises(TypeError, match="replacement must be a module, or a function that makes one, got int"):
        psal.swap_attention_(model, 3)  # type: ignore[arg-type]
    assert isinstance(model.attention, FullAttention)


@pytest.mark.parametrize("second", [None, ZeroDivisionError])
def test_a_factory_that_fails_leaves_the_network_as_it_was(second: type[Exception] | None) -> None:
    model = nn.Sequential(psal.PatchAttention(3, 1), psal.PatchAttention(3, 1))
    before, calls = list(model), iter([LinearAttention(3)])

    def make() -> nn.Module:
        for layer in calls:
            return layer
        if second is not None:
            raise second
        return None  # type: ignore[return-value]

    with pytest.raises(second or TypeError, match=None if second else "must make a module, but made NoneType"):
        psal.swap_attention_(model, make)
    assert list(model) == before


def test_one_layer_under_two_names_is_replaced_by_one_under_both() -> None:
    model, other = nn.Module(), nn.Module()
    model.first = model.second = psal.PatchAttention(3, 1)
    other.here = other.there = model
    assert psal.swap_attention_(other, lambda: LinearAttention(3)) == ["here.first", "here.second"]
    assert isinstance(model.first, LinearAttention)
    assert model.first is model.second


def test_the_warning_points_to_the_line_that_swaps() -> None:
    nothing = nn.Conv2d(1, 1, 1)
    with pytest.warns(UserWarning, match="swapped") as warned, psal.swapped_attention(nothing, nn.Identity()):
        pass
    with pytest.warns(UserWarning, match="swapped") as warned_too:
        psal.swap_attention_(nothing, nn.Identity())
    assert warned[0].filename == warned_too[0].filename == __file__
