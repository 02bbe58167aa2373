"""Weights of inpainting networks from this project and from elsewhere."""

from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from support.tolerances import assert_same_bits
from torch import Tensor

import psal
from psal.errors import UsageError
from psal.models.inpainting.weights import build_generator, load_generator

WIDTH = 4
# Names and shapes (in, out, kernel) of the layers in daa233/generative-inpainting-pytorch, in units of the width.
ENCODER: dict[str, tuple[float, float, int]] = {
    "conv1": (0, 1, 5),
    "conv3": (2, 2, 3),
    "conv5": (4, 4, 3),
    "conv6": (4, 4, 3),
}
COARSE = ENCODER | {"conv2_downsample": (1, 2, 3), "conv4_downsample": (2, 4, 3)}
FINE = {"conv2_downsample": (1, 1, 3), "conv3": (1, 2, 3)}
FINE_PLAIN = ENCODER | FINE | {"conv4_downsample": (2, 2, 3), "conv5": (2, 4, 3)}
FINE_ATTENDED = ENCODER | FINE | {"conv4_downsample": (2, 4, 3), "conv9": (4, 4, 3), "conv10": (4, 4, 3)}
ATROUS = {f"conv{7 + at}_atrous": (4, 4, 3) for at in range(4)}
DECODER = {"conv12": (4, 4, 3), "conv13": (4, 2, 3), "conv14": (2, 2, 3), "conv15": (2, 1, 3)}


def published_state_dict(width: int = WIDTH) -> "OrderedDict[str, Tensor]":
    """A state dict of the form that daa233/generative-inpainting-pytorch writes, with random weights."""
    half, colors = 0.5, 3 / width
    last = DECODER | {"conv16": (1, half, 3), "conv17": (half, colors, 3)}
    layers = {f"coarse_generator.{name}": shape for name, shape in (COARSE | ATROUS).items()}
    layers |= {f"coarse_generator.{name}": shape for name, shape in ({"conv11": (4, 4, 3)} | last).items()}
    layers |= {f"fine_generator.{name}": shape for name, shape in (FINE_PLAIN | ATROUS).items()}
    layers |= {f"fine_generator.pm{name}": shape for name, shape in FINE_ATTENDED.items()}
    layers |= {f"fine_generator.all{name}": shape for name, shape in ({"conv11": (8, 4, 3)} | last).items()}
    generator = torch.Generator().manual_seed(0)
    state: OrderedDict[str, Tensor] = OrderedDict()
    for name, (channels, out, kernel) in layers.items():
        shape = round(out * width), round(channels * width) or 5, kernel, kernel
        state[f"{name}.conv.weight"] = torch.randn(shape, generator=generator) / (shape[1] * kernel**2) ** 0.5
        state[f"{name}.conv.bias"] = torch.randn(shape[0], generator=generator) / 10
    return state


def example() -> tuple[Tensor, Tensor]:
    hole = torch.zeros(1, 1, 24, 32, dtype=torch.bool)
    hole[..., 8:15, 9:20] = True
    return torch.rand(1, 3, 24, 32) * 2 - 1, hole


@pytest.mark.parametrize("width", [WIDTH, 6])
def test_a_published_state_dict_is_loaded_under_other_names(width: int, tmp_path: Path) -> None:
    state = published_state_dict(width)
    torch.save(state, tmp_path / "gen_00430000.pt")
    network, settings = load_generator(tmp_path / "gen_00430000.pt")
    assert settings == {"attention": "contextual", "width": str(width)}
    assert not network.training
    loaded = network.state_dict()
    for name, published in {
        "coarse.encoder.0.0.weight": "coarse_generator.conv1.conv.weight",
        "refinement.attention_branch.encoder.3.0.bias": "fine_generator.pmconv4_downsample.conv.bias",
        "refinement.attention_branch.after.1.0.weight": "fine_generator.pmconv10.conv.weight",
        "refinement.decoder.8.weight": "fine_generator.allconv17.conv.weight",
    }.items():
        assert_same_bits(loaded[name], state[published])
    sums = sorted(float(x.sum()) for x in loaded.values())
    assert sums == sorted(float(x.sum()) for x in state.values())  # each once
    assert network(*example())[1].isfinite().all()


def test_psal_is_put_into_a_published_network(tmp_path: Path) -> None:
    torch.save(published_state_dict(), tmp_path / "gen.pt")
    network, _ = load_generator(tmp_path / "gen.pt")
    assert psal.swap_attention_(network, psal.PatchAttention(7, 3)) == ["refinement.attention_branch.attention"]
    assert network(*example())[1].isfinite().all()


@pytest.mark.parametrize("attention", ["contextual", "psal3", "none"])
def test_own_weights_come_back_with_their_attention(attention: str, tmp_path: Path) -> None:
    written = build_generator(attention, WIDTH).eval()
    settings = {"task": "inpaint", "attention": attention, "width": str(WIDTH)}
    save_file(written.state_dict(), tmp_path / "model.safetensors", settings)
    network, found = load_generator(tmp_path / "model.safetensors", seed=3)
    assert found == settings
    picture, hole = example()
    if attention == "psal3":
        layer = network.refinement.attention_branch
        assert layer is not None
        assert isinstance(layer.attention, psal.PatchAttention)
        assert layer.attention.seed == 3
    else:
        assert_same_bits(network(picture, hole)[1], written(picture, hole)[1])


def changed(**change: Any) -> dict[str, Any]:
    state = dict(published_state_dict())
    for name, value in change.items():
        key = name.replace("__", ".")
        if value is None:
            del state[key]
        else:
            state[key] = value
    return state


CONV3 = "coarse_generator__conv3__conv__weight"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (changed(**{CONV3: None}), "missing: coarse_generator.conv3.conv.weight"),
        (changed(extra=torch.zeros(1)), "left over: extra"),
        (
            changed(**{CONV3: torch.zeros(8, 8, 5, 5)}),
            r"of another shape: coarse_generator.conv3.conv.weight \(8, 8, 5, 5\), not \(8, 8, 3, 3\)",
        ),
        ({"weight": torch.zeros(1)}, r"missing: coarse_generator\..* and \d+ more; left over: weight"),
        ({"localD": {"weight": torch.zeros(1)}}, "is not a state dict: it must map names to tensors"),
        ([1, 2], "is not a state dict"),
    ],
)
def test_a_file_that_does_not_fit_is_refused_by_name(content: Any, message: str, tmp_path: Path) -> None:
    torch.save(content, tmp_path / "gen.pt")
    with pytest.raises(UsageError, match=message) as refused:
        load_generator(tmp_path / "gen.pt")
    assert "\n" not in str(refused.value)


class NotWeights:
    """An object that a state dict has no reason to hold."""


@pytest.mark.parametrize("name", ["gen.pt", "model.safetensors"])
def test_a_file_of_another_kind_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read as weights"):
        load_generator(tmp_path / name)
    (tmp_path / name).write_bytes(b"not weights")
    with pytest.raises(UsageError, match="cannot be read as weights"):
        load_generator(tmp_path / name)


def test_a_pickle_that_would_run_code_is_refused(tmp_path: Path) -> None:
    torch.save({"weight": NotWeights()}, tmp_path / "gen.pt")
    with pytest.raises(UsageError, match="cannot be read as weights: Weights only load failed") as refused:
        load_generator(tmp_path / "gen.pt")
    assert "\n" not in str(refused.value)


def test_weights_of_another_task_or_architecture_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    state = build_generator("none", WIDTH).state_dict()
    save_file(state, path, {"task": "colorize"})
    with pytest.raises(UsageError, match="was not written by psal train inpaint"):
        load_generator(path)
    for settings in ({}, {"attention": "psal0", "width": "4"}, {"attention": "psal3", "width": "x"}):
        save_file(state, path, {"task": "inpaint", **settings})
        with pytest.raises(UsageError, match="does not say which network it is of"):
            load_generator(path)
    save_file(state, path, {"task": "inpaint", "attention": "psal3", "width": "4"})
    with pytest.raises(UsageError, match=r"missing: refinement.attention_branch.encoder.0.0.weight, .*another shape"):
        load_generator(path)
