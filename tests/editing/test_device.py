"""Edits on a device: a simulated one, as there need not be a card."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from support.holes import box_mask
from support.simulated_device import simulated_device
from support.tolerances import assert_same_bits
from torch import Tensor

import psal
from psal.devices import choose_device
from psal.models import CSNLN
from psal.models.inpainting.weights import build_generator

pytest.importorskip("triton", reason="Triton is not installed: pip install triton")
Apply = Callable[..., Tensor]
HOLE = box_mask(36, 44, (9, 20, 11, 25))
NAMES = ["reconstruct", "colorize", "colorize, network", "upscale", "upscale, network", "inpaint, network"]


@pytest.fixture
def edits(tmp_path: Path) -> dict[str, Apply]:
    """All edits that run on a device, but for the device."""
    image, reference = torch.rand(3, 36, 44), torch.rand(3, 31, 40)
    upscaler, generator = tmp_path / "upscale.safetensors", tmp_path / "inpaint.safetensors"
    save_file(
        CSNLN(2, width=4, depth=2).state_dict(), upscaler,
        {"task": "upscale", "cross_scale": "exact", "in_scale": "local15"},
    )  # fmt: skip
    save_file(
        build_generator("psal3", 2).state_dict(), generator, {"task": "inpaint", "attention": "psal3", "width": "2"}
    )
    network: dict[str, Any] = {"model": "network"}
    calls: list[Apply] = [
        partial(psal.reconstruct, image, reference),
        partial(psal.colorize, image, reference),
        partial(psal.colorize, image, reference, model="network"),
        partial(psal.upscale, image, 1.5),
        partial(psal.upscale, image, 2, weights=upscaler, **network),
        partial(psal.inpaint, image, HOLE, weights=generator, **network),
    ]
    return dict(zip(NAMES, calls, strict=True))


@pytest.mark.parametrize("name", NAMES)
def test_an_edit_searches_on_the_device(name: str, edits: dict[str, Apply], monkeypatch: pytest.MonkeyPatch) -> None:
    expected = edits[name](seed=0)
    with simulated_device(monkeypatch) as device:
        assert_same_bits(edits[name](seed=0, device="cuda"), expected)
        assert device.searches
        searches = device.searches
        edits[name](seed=0)
        assert device.searches == searches  # the CPU is the default in Python


def test_the_shifts_are_colored_after_a_search_on_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    image, reference = torch.rand(3, 20, 23), torch.rand(3, 24, 17)
    expected = psal.reconstruct(image, reference, seed=0, return_shifts=True)
    with simulated_device(monkeypatch):
        made = psal.reconstruct(image, reference, seed=0, return_shifts=True, device="cuda:0")
    assert_same_bits(made[1], expected[1])


def test_patches_are_filled_on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    image = torch.rand(3, 36, 44)
    expected = psal.inpaint(image, HOLE, seed=0)
    with simulated_device(monkeypatch) as device:
        assert_same_bits(psal.inpaint(image, HOLE, seed=0, device="auto"), expected)
        assert not device.searches
        with pytest.raises(ValueError, match="device 'cuda' is for model 'network': patches are filled on the CPU"):
            psal.inpaint(image, HOLE, device="cuda")


def test_a_network_that_does_not_fit_into_the_devices_memory_is_refused(
    edits: dict[str, Apply], monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        simulated_device(monkeypatch, memory=1e3),
        pytest.raises(ValueError, match=r"for 44 × 36 pixels, and 0\.0 GB are free"),
    ):
        edits["inpaint, network"](seed=0, device="cuda")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("word", ["meta", "mps", "tpu", "", "cuda:x"])
def test_devices_without_kernels_are_refused(name: str, word: str, edits: dict[str, Apply]) -> None:
    with pytest.raises(ValueError, match=f"device must be 'auto', 'cpu', 'cuda' or .*, got '{word}'"):
        edits[name](device=word)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_a_device_that_is_not_there_is_refused(name: str, edits: dict[str, Apply]) -> None:
    with pytest.raises(ValueError, match="there is no device 'cuda': torch finds no CUDA device"):
        edits[name](device=torch.device("cuda"))


def test_auto_takes_the_device_that_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert choose_device("auto") == torch.device("cpu")
    with simulated_device(monkeypatch):
        assert choose_device("auto") == torch.device("cuda")
        with pytest.raises(ValueError, match=r"there is no device 'cuda:1': torch finds 1 CUDA device$"):
            choose_device("cuda:1")


def test_a_device_is_a_word_or_torchs() -> None:
    with pytest.raises(TypeError, match=r"device must be .*, got 0"):
        choose_device(0)  # type: ignore[arg-type]
