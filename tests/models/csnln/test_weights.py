"""Weights of trained networks: files of ``psal train upscale`` and of the network's authors."""

import re
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from support.tolerances import assert_close, assert_same_bits
from torch import Tensor

from psal.models import CSNLN
from psal.models.csnln.weights import load_upscaler

WIDTH, DEPTH = 6, 3
MEAN = torch.tensor([0.4488, 0.4371, 0.4040])


def published(scale: int, width: int = WIDTH, depth: int = DEPTH) -> dict[str, Tensor]:
    """A state dict with the names and shapes of the authors' code."""
    generator = torch.Generator().manual_seed(scale)
    made: dict[str, Tensor] = {}

    def add(name: str, *shape: int, bias: int | None = None) -> None:
        """A convolution and the PReLU behind it, or one without."""
        made[f"{name}.weight"] = torch.randn(shape, generator=generator) / 9
        made[f"{name}.bias"] = torch.randn(bias or shape[0], generator=generator) / 9
        *parent, position = name.split(".")
        if position == "0" and parent != ["tail"]:
            made[".".join([*parent, "1", "weight"])] = torch.rand(1, generator=generator)

    for name, sign in (("sub_mean", -1), ("add_mean", 1)):
        made[f"{name}.weight"], made[f"{name}.bias"] = torch.eye(3)[..., None, None], sign * MEAN
    add("head.0.0", width, 3, 3, 3)
    add("head.1.0", width, width, 3, 3)
    size = {2: 6, 3: 9, 4: 6}[scale]
    for projection in ["multi_source_projection", "multi_source_projection_2"][: 2 if scale == 4 else 1]:
        made[f"SEM.{projection}.up_attention.escape_NaN"] = torch.tensor([1e-4])
        for branch, names in (("up", ("conv_match_1", "conv_match_2")), ("down", ("conv_match1", "conv_match2"))):
            for name in names:
                add(f"SEM.{projection}.{branch}_attention.{name}.0", width // 2, width, 1, 1)
            add(f"SEM.{projection}.{branch}_attention.conv_assembly.0", width, width, 1, 1)
        add(f"SEM.{projection}.upsample.0", width, width, size, size)
        add(f"SEM.{projection}.encoder.body.0", width, width, 3, 3)
        add(f"SEM.{projection}.encoder.body.2", width, width, 3, 3)
    add("SEM.down_sample_1.0", width, width, size, size)
    add("SEM.error_encode.0", width, width, size, size)
    if scale == 4:
        for name in ("down_sample_3", "down_sample_4", "error_encode_2"):
            add(f"SEM.{name}.0", width, width, 8, 8)
    else:
        add("SEM.down_sample_2.0", width, width, size, size)
    add("SEM.post_conv.0", width, width, 3, 3)
    add("tail.0", 3, width * depth, 3, 3)
    return made


class Published:
    """The authors' network on a single picture whose sides are multiples of the scale, by the names of its weights."""

    def __init__(self, weights: dict[str, Tensor], scale: int) -> None:
        self.weights, self.scale = weights, scale

    def conv(self, name: str, x: Tensor, activation: bool = True, **options: int) -> Tensor:
        weight, bias = (self.weights[f"{name}.0.{part}"] for part in ("weight", "bias"))
        y = F.conv2d(x, weight, bias, **options)
        return F.prelu(y, self.weights[f"{name}.1.weight"]) if activation else y

    def deconv(self, name: str, x: Tensor, **options: int) -> Tensor:
        weight, bias = (self.weights[f"{name}.0.{part}"] for part in ("weight", "bias"))
        return F.prelu(F.conv_transpose2d(x, weight, bias, **options), self.weights[f"{name}.1.weight"])

    def across_scales(self, name: str, x: Tensor, s: int) -> Tensor:
        key = self.conv(f"{name}.conv_match_2", F.interpolate(x, scale_factor=1 / s, mode="bilinear"))
        value = self.conv(f"{name}.conv_assembly", x)
        keys = F.normalize(F.unfold(key, 3, padding=1)[0].T, eps=1e-4).reshape(-1, key.shape[1], 3, 3)
        scores = F.conv2d(self.conv(f"{name}.conv_match_1", x), keys, padding=1)
        patches = F.unfold(value, 3 * s, padding=s, stride=s)[0].T.reshape(len(keys), -1, 3 * s, 3 * s)
        return F.conv_transpose2d(torch.softmax(10 * scores, 1), patches, stride=s, padding=s) / 6

    def in_scale(self, name: str, x: Tensor) -> Tensor:
        query, key, value = (self.conv(f"{name}.conv_{part}", x) for part in ("match1", "match2", "assembly"))
        weights = torch.softmax(query.flatten(2).mT @ key.flatten(2), 2)
        return (weights @ value.flatten(2).mT).mT.reshape(x.shape)

    def project(self, name: str, x: Tensor) -> Tensor:
        s = 3 if self.scale == 3 else 2
        down = self.deconv(f"{name}.upsample", self.in_scale(f"{name}.down_attention", x), stride=s, padding=s)
        error = self.across_scales(f"{name}.up_attention", x, s) - down
        body = {part: self.weights[f"{name}.encoder.body.{part}"] for part in ("0.weight", "0.bias", "1.weight")}
        hidden = F.prelu(F.conv2d(error, body["0.weight"], body["0.bias"], padding=1), body["1.weight"])
        weight, bias = (self.weights[f"{name}.encoder.body.2.{part}"] for part in ("weight", "bias"))
        return down + F.conv2d(hidden, weight, bias, padding=1) + error

    def recur(self, x: Tensor) -> tuple[Tensor, Tensor]:
        s = 3 if self.scale == 3 else 2
        up = self.project("SEM.multi_source_projection", x)
        error = x - self.conv("SEM.down_sample_1", up, stride=s, padding=s)
        large = up + self.deconv("SEM.error_encode", error, stride=s, padding=s)
        if self.scale < 4:
            return self.conv(
                "SEM.post_conv", self.conv("SEM.down_sample_2", large, stride=s, padding=s), padding=1
            ), large
        up = self.project("SEM.multi_source_projection_2", large)
        error = x - self.conv("SEM.down_sample_3", up, stride=4, padding=2)
        large = up + self.deconv("SEM.error_encode_2", error, stride=4, padding=2)
        return self.conv("SEM.post_conv", self.conv("SEM.down_sample_4", large, stride=4, padding=2), padding=1), large

    def __call__(self, picture: Tensor) -> Tensor:
        x = self.conv("head.1", self.conv("head.0", picture - MEAN[:, None, None], padding=1), padding=1)
        found = []
        for _ in range(DEPTH):
            x, large = self.recur(x)
            found.append(large)
        return self.conv("tail", torch.cat(found, 1), activation=False, padding=1) + MEAN[:, None, None]


@pytest.mark.parametrize("scale", [2, 3, 4])
def test_published_state_dicts_load_by_name(scale: int, tmp_path: Path) -> None:
    weights = published(scale)
    torch.save(weights, tmp_path / "model.pt")
    network = load_upscaler(tmp_path / "model.pt", cross_scale="psal3", in_scale="local15")
    assert (network.scale, network.depth, network.training) == (scale, DEPTH, False)
    assert len(network.state_dict()) == sum(not re.search("_mean|escape", name) for name in weights)
    x = torch.rand(1, 3, 12, 6)
    as_trained = load_upscaler(tmp_path / "model.pt")
    assert_close(as_trained(x), Published(weights, scale)(x))
    large = network(torch.rand(1, 3, 11, 9))
    assert large.shape == (1, 3, 11 * scale, 9 * scale)
    assert large.isfinite().all()


def test_published_names_in_safetensors_load_too(tmp_path: Path) -> None:
    save_file(published(2), tmp_path / "model.safetensors")
    assert load_upscaler(tmp_path / "model.safetensors").scale == 2


def test_the_layers_are_those_of_training_unless_others_are_asked_for(tmp_path: Path) -> None:
    network = CSNLN(3, width=WIDTH, depth=2, cross_scale="exact", in_scale="exact", residual=True).eval()
    settings = {"task": "upscale", "cross_scale": "exact", "in_scale": "exact", "residual": "True"}
    save_file(network.state_dict(), tmp_path / "model.safetensors", settings)
    x = torch.rand(1, 3, 11, 10)
    same = load_upscaler(tmp_path / "model.safetensors")
    assert_same_bits(same(x), network(x))
    other = load_upscaler(tmp_path / "model.safetensors", cross_scale="none", in_scale="local3")
    assert not torch.allclose(other(x), network(x))
    every = load_upscaler(tmp_path / "model.safetensors", cross_scale="psal100", seed=0)
    assert torch.allclose(every(x), network(x), atol=1e-5)


def test_missing_and_left_over_names_are_listed(tmp_path: Path) -> None:
    weights = published(2)
    for name in ("weight", "bias"):
        del weights[f"SEM.post_conv.0.{name}"]
        weights[f"extra.{name}"] = torch.zeros(1)
    weights["head.0.0.bias"] = torch.zeros(7)
    torch.save(weights, tmp_path / "model.pt")
    with pytest.raises(ValueError, match=r"model\.pt does not hold the weights of an upscaler") as refused:
        load_upscaler(tmp_path / "model.pt")
    said = str(refused.value)
    assert "missing: cell.post.0.weight, cell.post.0.bias; left over: extra.weight, extra.bias" in said
    assert "of another shape: head.0.0.bias (7,), not (6,)" in said


def test_long_lists_are_cut(tmp_path: Path) -> None:
    weights = {name: x for name, x in published(2).items() if ".down_attention." not in name}
    torch.save(weights, tmp_path / "model.pt")
    with pytest.raises(ValueError, match=r"missing: (\S+ ){4}and 5 more$"):
        load_upscaler(tmp_path / "model.pt")


def test_other_ranges_of_values_are_refused(tmp_path: Path) -> None:
    torch.save(published(2) | {"sub_mean.bias": -255 * MEAN}, tmp_path / "model.pt")
    with pytest.raises(ValueError, match=r"sub_mean.bias is \[-114\..*: only RGB in 0..1 is supported"):
        load_upscaler(tmp_path / "model.pt")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"x": torch.zeros(1)}, "was not written by psal train upscale, and has no published names either"),
        ({"SEM.x": torch.zeros(1)}, "missing: head.1.0.weight, cell.reduce.0.weight, tail.weight"),
        (published(2) | {"tail.0.weight": torch.zeros(3)}, "the shapes do not fit: head.1.0.weight"),
        ([1, 2], "is not a state dict"),
        ({"epoch": 3}, "is not a state dict"),
    ],
)
def test_other_files_are_refused(content: object, message: str, tmp_path: Path) -> None:
    torch.save(content, tmp_path / "model.pt")
    with pytest.raises(ValueError, match=message):
        load_upscaler(tmp_path / "model.pt")


@pytest.mark.parametrize("name", ["model.pt", "model.safetensors"])
def test_broken_and_missing_files_are_named(name: str, tmp_path: Path) -> None:
    for _ in range(2):
        with pytest.raises(ValueError, match=f"{name} cannot be read as weights") as refused:
            load_upscaler(tmp_path / name)
        assert "\n" not in str(refused.value)
        (tmp_path / name).write_bytes(b"broken")
