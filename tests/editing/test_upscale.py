"""The result shrinks to the picture again, and recurring structures become sharper than by interpolation."""

import math
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

import psal
from psal.editing.resizing import back_project, resize


def stripes(height: int, width: int) -> Tensor:
    """Slanted stripes ``[3, H, W]`` that get finer to the right, with soft edges two pixels wide."""
    y, x = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    phase = 8 * torch.log2(1 + x / width * 3) + y / 29
    edge = torch.tanh(torch.sin(phase * 2 * torch.pi) * 6) * 0.35 + 0.5
    return torch.stack([edge, 0.2 + 0.5 * edge, 1 - edge])


def noise(*shape: int) -> Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(0))


def shrunk(image: Tensor, scale: float) -> Tensor:
    return resize(image[None], (round(image.shape[1] / scale), round(image.shape[2] / scale)))[0].clamp(0, 1)


def error(image: Tensor, truth: Tensor) -> float:
    return math.sqrt((image - truth)[:, 4:-4, 4:-4].square().mean().item())


@pytest.mark.parametrize("scale", [1.07, 1.5, 2, 2.7, 4])
@pytest.mark.parametrize("size", [(37, 51), (1, 1), (1, 9), (2, 3), (5, 4)])
def test_sides_are_the_rounded_product(size: tuple[int, int], scale: float) -> None:
    larger = psal.upscale(noise(3, *size), scale, seed=0)
    assert larger.shape == (3, round(size[0] * scale), round(size[1] * scale))
    assert larger.min() >= 0
    assert larger.max() <= 1


@pytest.mark.parametrize("scale", [1.3, 2, 3.5])
def test_shrinking_the_result_gives_the_picture_again(scale: float) -> None:
    image = shrunk(stripes(121, 143), 2)
    larger = psal.upscale(image, scale, seed=0)
    again = resize(larger[None], (image.shape[1], image.shape[2]))[0]
    torch.testing.assert_close(again, image, rtol=0, atol=1 / 255)


def test_pillow_shrinks_an_8_bit_result_to_the_picture() -> None:
    pixels = (shrunk(stripes(121, 143), 2) * 255).round().to(torch.uint8).movedim(0, 2).numpy()
    larger = psal.upscale(Image.fromarray(pixels), 2, seed=0)
    again = np.array(larger.resize(pixels.shape[1::-1], Image.Resampling.BICUBIC))
    assert np.abs(again.astype(int) - pixels).max() <= 1


@pytest.mark.parametrize("scale", [1.5, 2, 3])
def test_detail_that_recurs_at_another_size_is_found(scale: float) -> None:
    truth = stripes(150, 192)
    small = shrunk(truth, scale)
    size = truth.shape[1], truth.shape[2]
    without = back_project(resize(small[None], size), small[None], rounds=30)[0].clamp(0, 1)
    found = psal.upscale(small, scale, seed=0)
    assert error(found, truth) < 0.8 * error(without, truth)


def test_tiles_leave_no_borders() -> None:
    """A picture this wide is enlarged in two tiles."""
    truth = stripes(40, 1240)
    small = shrunk(truth, 2)
    errors = (truth - psal.upscale(small, 2, seed=0)).square().mean((0, 1))
    blocks = errors[20:-20].reshape(-1, 24).mean(1)  # the tiles meet in the middle of block 25
    assert blocks[25] < 1.5 * blocks[15:35].median()


@pytest.mark.parametrize(("slope", "period"), [(0.2, 18), (0.35, 24)])
def test_slanted_lines_have_no_jags(slope: float, period: int) -> None:
    y, x = torch.meshgrid(torch.arange(200), torch.arange(200), indexing="ij")
    truth = (0.5 + 0.4 * torch.tanh(3 * torch.sin((x + slope * y) * 2 * torch.pi / period)))[None]
    assert error(psal.upscale(shrunk(truth, 4), 4, seed=0), truth) < 0.025  # 0.04 and more with jags


def test_constant_picture_stays_constant() -> None:
    larger = psal.upscale(torch.full((1, 23, 19), 0.3), 2, seed=0)
    torch.testing.assert_close(larger, torch.full((1, 46, 38), 0.3), rtol=0, atol=1e-4)


def test_gray_gains_no_color() -> None:
    gray = shrunk(stripes(87, 101), 2)[:1]
    larger = psal.upscale(gray.expand(3, -1, -1), 2, seed=0)
    torch.testing.assert_close(larger, larger[:1].expand(3, -1, -1), rtol=0, atol=1e-4)
    assert psal.upscale(gray, 2, seed=0).shape == (1, *larger.shape[1:])


def test_alpha_is_enlarged_with_the_picture() -> None:
    image = torch.cat([shrunk(stripes(66, 94), 2), F.pad(torch.ones(1, 33, 24), (0, 23))])
    larger = psal.upscale(image, 2, seed=0)
    assert larger.shape == (4, 66, 94)
    assert larger[3, :, :40].min() > 0.99
    assert larger[3, :, 56:].max() < 0.01
    assert larger[:3].equal(psal.upscale(image[:3], 2, seed=0))


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32])
def test_arrays_keep_their_type(dtype: type) -> None:
    largest = np.iinfo(dtype).max if np.issubdtype(dtype, np.integer) else 1
    image: NDArray[Any] = (noise(13, 17).numpy() * largest).astype(dtype)
    larger = psal.upscale(image, 1.5, seed=0)
    assert larger.dtype == dtype
    assert larger.shape == (20, 26)


def test_same_seed_same_picture() -> None:
    image = noise(3, 31, 29)
    assert psal.upscale(image, 2, seed=5).equal(psal.upscale(image, 2, seed=5))


def test_largest_seed_wraps_around() -> None:
    image = noise(3, 31, 29)
    assert not psal.upscale(image, 2, seed=2**63 - 1).equal(psal.upscale(image, 2, seed=2**63 - 2))


def test_default_seed_comes_from_torch() -> None:
    image = noise(3, 31, 29)
    torch.manual_seed(1)
    first, second = psal.upscale(image, 2), psal.upscale(image, 2)
    torch.manual_seed(1)
    assert psal.upscale(image, 2).equal(first)
    assert not second.equal(first)


def test_progress_rises_to_one() -> None:
    shares: list[float] = []
    psal.upscale(noise(3, 21, 18), 4, seed=0, progress=shares.append)
    assert len(shares) > 1
    assert shares == sorted(shares)
    assert shares[-1] == 1


@pytest.mark.parametrize("scale", [1, 0.5, 4.01, float("nan"), float("inf")])
def test_scale_out_of_range_is_refused(scale: float) -> None:
    with pytest.raises(ValueError, match=r"scale must be above 1 and at most 4"):
        psal.upscale(noise(3, 9, 9), scale)


def test_errors_name_the_argument() -> None:
    with pytest.raises(TypeError, match="scale must be a number"):
        psal.upscale(noise(3, 9, 9), "2")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="seed must be an int"):
        psal.upscale(noise(3, 9, 9), 2, seed=1.5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="image must be"):
        psal.upscale(None, 2)  # type: ignore[arg-type]
