"""Holes filled by the trained network."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from support.commands import Run, load, mask, photo, save
from support.holes import box_mask
from support.tolerances import assert_same_bits
from torch import Tensor

import psal
from psal.editing import inpaint_network
from psal.models.inpainting.filling import fill
from psal.models.inpainting.weights import build_generator, load_generator

WIDTH = 2


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    return write_weights(tmp_path / "model.safetensors", "psal3")


def write_weights(path: Path, attention: str, width: int = WIDTH) -> Path:
    """Random weights: enough to tell outputs apart."""
    torch.manual_seed(1)
    settings = {"task": "inpaint", "attention": attention, "width": str(width)}
    save_file(build_generator(attention, width).state_dict(), path, settings)
    return path


@pytest.mark.parametrize("size", [(32, 40), (33, 47), (18, 61)])
@pytest.mark.parametrize("attention", ["contextual", "psal3", "none"])
def test_pictures_of_any_size_are_filled_and_known_pixels_kept(
    attention: str, size: tuple[int, int], tmp_path: Path
) -> None:
    path = write_weights(tmp_path / "model.safetensors", attention)
    image, hole = torch.rand(3, *size), box_mask(*size, (5, 12, 7, 15), (size[0] - 3, size[0], size[1] - 5, size[1]))
    filled = psal.inpaint(image, hole, model="network", weights=path, seed=0)
    assert_same_bits(filled[:, ~hole], image[:, ~hole])
    assert not filled[:, hole].equal(image[:, hole])
    assert 0 <= filled.min() <= filled.max() <= 1
    again = psal.inpaint(torch.where(hole, 0.5, image), hole, model="network", weights=path, seed=0)
    assert_same_bits(again, filled)  # what is in the hole does not matter, at the padded border neither


def test_a_picture_is_filled_in_one_piece(weights: Path) -> None:
    image, hole = torch.rand(3, 36, 44), box_mask(36, 44, (9, 20, 11, 25))
    network, _ = load_generator(weights, seed=4)
    expected = fill(network, image[None], hole[None, None])[0]
    assert_same_bits(psal.inpaint(image, hole, model="network", weights=weights, seed=4), expected)


def test_another_attention_is_put_in(tmp_path: Path) -> None:
    path = write_weights(tmp_path / "model.safetensors", "contextual", width=8)
    image, hole = torch.rand(3, 64, 64), box_mask(64, 64, (20, 36, 20, 40))
    inpaint = partial(psal.inpaint, image, hole, model="network", weights=path, seed=0)
    own = inpaint()
    assert inpaint(attention="contextual").allclose(own)
    assert inpaint(attention="contextual-materialized").allclose(own, atol=1e-5)
    assert not inpaint(attention="psal3").allclose(own, atol=1e-6)


@pytest.mark.parametrize("channels", [1, 2, 4])
def test_gray_stays_gray_and_alpha_is_kept(channels: int, weights: Path) -> None:
    image, hole = torch.rand(channels, 24, 28), box_mask(24, 28, (8, 14, 9, 20))
    filled = psal.inpaint(image, hole, model="network", weights=weights, seed=0)
    assert filled.shape == image.shape
    assert filled[..., ~hole].equal(image[..., ~hole])
    if channels in (2, 4):
        assert filled[-1].equal(image[-1])


def test_a_picture_without_a_hole_comes_back(weights: Path) -> None:
    image = torch.rand(3, 20, 20)
    assert psal.inpaint(image, box_mask(20, 20), model="network", weights=weights).equal(image)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mask": box_mask(24, 20)}, "they must have the same size"),
        ({"mask": ~box_mask(24, 24)}, "mask marks the whole image as hole"),
        ({"mask": ~box_mask(24, 24, (0, 8, 0, 4))}, "mask must leave at least 3 whole squares of 4 × 4 pixels, .* 2:"),
        ({"weights": None}, "model 'network' needs weights: a file that psal train inpaint wrote"),
        ({"model": "patches"}, "weights are those of a network, but model is 'patches'"),
        ({"model": "net"}, "model must be one of 'patches', 'network', got 'net'"),
        ({"attention": "psal4"}, "attention must be one of 'own', "),
        ({"weights": "nowhere.pt"}, "nowhere.pt cannot be read as weights"),
    ],
)
def test_wrong_arguments_are_named(change: dict[str, Any], message: str, weights: Path) -> None:
    given: dict[str, Any] = {"mask": box_mask(24, 24, (8, 14, 8, 14)), "model": "network", "weights": weights} | change
    with pytest.raises(ValueError, match=message):
        psal.inpaint(torch.rand(3, 24, 24), given.pop("mask"), **given)


def test_full_attention_on_a_large_picture_is_refused_beforehand(tmp_path: Path) -> None:
    path = write_weights(tmp_path / "model.safetensors", "contextual")
    hole = box_mask(2700, 3300, (1000, 1128, 1000, 1128))
    message = r"materialized needs at least 15\d\.\d GB for 3300 × 2700 pixels, and .* GB are free: take attention="
    with pytest.raises(ValueError, match=message):
        psal.inpaint(
            torch.zeros(3, 2700, 3300), hole, model="network", weights=path, attention="contextual-materialized"
        )


def test_a_network_that_does_not_fit_into_memory_is_refused(weights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inpaint_network, "available_memory", lambda device: 1000.0)
    with pytest.raises(ValueError, match=r"the network needs at least 0.0 GB .*: make the picture smaller"):
        psal.inpaint(torch.rand(3, 24, 24), box_mask(24, 24, (8, 14, 8, 14)), model="network", weights=weights)


def test_the_memory_of_this_machine_is_known() -> None:
    assert 1e6 < inpaint_network.available_memory(torch.device("cpu")) < float("inf")


def test_the_command_line_fills_by_the_network(run_here: Run, weights: Path, tmp_path: Path) -> None:
    picture, hole = save(tmp_path / "photo.png", photo()), save(tmp_path / "mask.png", mask())
    out = tmp_path / "out.png"
    command = partial(run_here, "inpaint", picture, hole, "-o", out, "--threads", 1, "--model", "network")
    done = command("--weights", weights)
    assert (done.returncode, done.stderr) == (0, "")
    known = np.asarray(mask()) == 0
    assert (load(out)[known] == photo()[known]).all()
    assert not (load(out) == photo()).all()
    without = command("--overwrite")
    assert without.returncode == 1
    assert "model 'network' needs weights" in without.stderr


def test_padding_repeats_the_border(weights: Path) -> None:
    """The last rows and columns are seen again, the hole among them."""
    seen: list[Tensor] = []
    network, _ = load_generator(weights, seed=0)
    network.register_forward_pre_hook(lambda _, given: seen.extend(given))
    fill(network, torch.rand(1, 3, 22, 25), box_mask(22, 25, (10, 22, 5, 9))[None, None])
    picture, hole = seen
    assert picture.shape == (1, 3, 24, 28)
    assert picture[..., 27].equal(picture[..., 24])
    assert hole[0, 0, 21:].all(0).sum() == 4
