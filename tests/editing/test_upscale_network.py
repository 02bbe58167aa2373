"""Enlarging by a trained network: scales, kinds of pictures, and what is refused."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from skimage import data
from support.commands import Run, load, photo, save
from support.tolerances import assert_close
from torch import Tensor

import psal
from psal.data.degradation import downscale
from psal.models import CSNLN
from psal.training.upscale import bicubic


def weights_file(folder: Path, scale: int, in_scale: str = "local15") -> Path:
    """A network that interpolates roughly: random weights, with a small tail."""
    torch.manual_seed(0)
    network = CSNLN(scale, width=4, depth=2)
    path = folder / f"x{scale}.safetensors"
    save_file(network.state_dict(), path, {"task": "upscale", "cross_scale": "exact", "in_scale": in_scale})
    return path


def enlarge(image: object, scale: float, weights: Path, **options: object) -> Any:
    return psal.upscale(image, scale, model="network", weights=weights, seed=0, **options)  # type: ignore[arg-type]


def picture(*shape: int) -> Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(("trained", "scale"), [(2, 2), (3, 3), (4, 4), (2, 4)])
@pytest.mark.parametrize("size", [(13, 18), (1, 1), (2, 11), (7, 3)])
def test_any_size_is_enlarged(trained: int, scale: int, size: tuple[int, int], tmp_path: Path) -> None:
    large = enlarge(picture(3, *size), scale, weights_file(tmp_path, trained))
    assert large.shape == (3, scale * size[0], scale * size[1])
    assert large.isfinite().all()
    assert 0 <= large.min() <= large.max() <= 1


@pytest.mark.parametrize("attention", ["psal7", "exact"])
def test_the_result_is_the_networks(attention: str, tmp_path: Path) -> None:
    path, image = weights_file(tmp_path, 2, in_scale="exact"), picture(3, 14, 11)
    torch.manual_seed(0)
    network = CSNLN(2, width=4, depth=2, cross_scale=attention, in_scale="local15", seed=0)
    with torch.no_grad():
        assert_close(enlarge(image, 2, path, attention=attention), network(image[None])[0].clamp(0, 1))


def test_several_steps_are_those_of_the_network_one_after_the_other(tmp_path: Path) -> None:
    path, image = weights_file(tmp_path, 2), picture(3, 12, 9)
    assert_close(enlarge(image, 4, path), enlarge(enlarge(image, 2, path), 2, path))


def test_gray_stays_gray_and_alpha_is_enlarged_alongside(tmp_path: Path) -> None:
    path = weights_file(tmp_path, 2)
    assert enlarge(picture(1, 9, 12), 2, path).shape == (1, 18, 24)
    both = torch.cat([picture(3, 10, 14), torch.ones(1, 10, 14)])
    both[3, :, 7:] = 0
    large = enlarge(both, 2, path)
    assert large.shape == (4, 20, 28)
    assert large[3, :, :11].min() > 0.99
    assert large[3, :, 17:].max() < 0.01
    assert large[:3].equal(enlarge(both[:3], 2, path))
    assert enlarge(picture(2, 9, 12), 2, path).shape == (2, 18, 24)


def test_kinds_and_depths_are_kept(tmp_path: Path) -> None:
    path = weights_file(tmp_path, 2)
    pixels = (photo().astype(np.uint16) * 257)[:9, :11]
    large = enlarge(pixels, 2, path)
    assert large.dtype == np.uint16
    assert large.shape == (18, 22, 3)


def test_the_seed_chooses_the_search(tmp_path: Path) -> None:
    path, image = weights_file(tmp_path, 2), picture(3, 40, 40)
    first, again = (psal.upscale(image, 2, model="network", weights=path, seed=3) for _ in range(2))
    assert first.equal(again)


def test_progress_rises_to_one(tmp_path: Path) -> None:
    shares: list[float] = []
    enlarge(picture(3, 9, 9), 4, weights_file(tmp_path, 2), progress=shares.append)
    assert len(shares) == 5
    assert shares == sorted(shares)
    assert shares[-1] == 1


@pytest.mark.parametrize(("trained", "scale"), [(2, 3), (2, 2.5), (3, 2), (4, 2)])
def test_a_scale_that_the_weights_were_not_trained_for_is_refused(trained: int, scale: float, tmp_path: Path) -> None:
    path = weights_file(tmp_path, trained)
    with pytest.raises(ValueError, match=f"enlarges by {trained}, or a power of it, but the scale is {scale}"):
        enlarge(picture(3, 9, 9), scale, path)


def test_exact_attention_on_a_large_picture_is_refused_with_what_it_needs(tmp_path: Path) -> None:
    large = torch.zeros(1).expand(3, 1080, 1920)
    with pytest.raises(ValueError, match=re.escape("1080 × 1920 pixels compares 1.1e+12 pairs")):
        enlarge(large, 2, weights_file(tmp_path, 2), attention="exact")
    with pytest.raises(ValueError, match="800 × 800 pixels compares"):  # the second step's, before the first is run
        enlarge(torch.zeros(1).expand(3, 400, 400), 4, weights_file(tmp_path, 2), attention="exact")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weights": "x.pt"}, "weights are those of a network, but model is 'patches'"),
        ({"model": "magic"}, "model must be one of 'patches', 'network', got 'magic'"),
        ({"model": "network", "weights": "x.pt", "attention": "full"}, "attention must be one of 'psal1'"),
        ({"model": "network", "weights": "nowhere.pt"}, r"nowhere\.pt cannot be read as weights"),
    ],
)
def test_wrong_arguments_are_named(options: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        psal.upscale(picture(3, 9, 9), 2, **options)  # type: ignore[arg-type]


def test_the_command_enlarges_and_refuses(tmp_path: Path, run_here: Run) -> None:
    small, path = save(tmp_path / "small.png", photo()), weights_file(tmp_path, 2)
    options = ("--model", "network", "--weights", path)
    done = run_here("upscale", small, "-o", tmp_path / "large.png", *options)
    assert (done.returncode, done.stderr) == (0, "")
    assert load(tmp_path / "large.png").shape == (54, 70, 3)
    again = run_here("upscale", small, "-o", tmp_path / "larger.png", "--scale", 3, *options)
    assert again.returncode != 0
    assert "x2.safetensors enlarges by 2, or a power of it, but the scale is 3" in again.stderr
    assert again.stderr.count("\n") == 1
    assert not (tmp_path / "larger.png").exists()
    packaged = run_here("upscale", small, "-o", tmp_path / "packaged.png", "--model", "network")
    assert (packaged.returncode, packaged.stderr) == (0, "")
    assert load(tmp_path / "packaged.png").shape == (54, 70, 3)


def test_the_packaged_network_is_better_than_bicubic_and_the_patches() -> None:
    original = torch.from_numpy(data.astronaut()[:192, 100:292]).permute(2, 0, 1)
    small = downscale(original, 2).float() / 255
    ways = [bicubic(small, 2), psal.upscale(small, 2, seed=0), psal.upscale(small, 2, model="network", seed=0)]
    errors = [(way - original / 255).square().mean().item() for way in ways]
    assert errors == sorted(errors, reverse=True)
