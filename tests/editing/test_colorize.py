import math
import re
from pathlib import Path

import numpy as np
import pytest
import skimage.data
import torch
import torch.nn.functional as F
from PIL import Image
from torch import Tensor

import psal

LUMA = torch.tensor([0.299, 0.587, 0.114])


def scene(height: int = 83, width: int = 121) -> Tensor:
    """Color picture ``[3, H, W]`` with 8-bit values, whose four regions differ in texture."""
    generator = torch.Generator().manual_seed(1)
    y, x = torch.meshgrid(torch.arange(height) / 1.0, torch.arange(width) / 1.0, indexing="ij")
    textures = [torch.sin(x / 1.5), torch.sin(y / 2), torch.sin((x + y) / 3), torch.rand(height, width) * 2 - 1]
    colors = torch.rand(4, 3, generator=generator) * 0.5 + 0.25
    region = 2 * (y > height / 2 + 6 * torch.sin(x / 9)) + (x > width / 2)
    texture = torch.stack(textures).gather(0, region.long()[None])[0]
    color = colors[region.long()].movedim(2, 0) + 0.12 * texture
    return (color.clamp(0, 1) * 255).round() / 255


def photograph(height: int = 83, width: int = 121) -> Tensor:
    """A real picture ``[3, H, W]``: the network was trained on videos, and knows nothing of synthetic textures."""
    pixels = torch.from_numpy(skimage.data.coffee()).movedim(2, 0)[None] / 255
    return F.interpolate(pixels, (height, width), mode="bicubic", antialias=True)[0].clamp(0, 1)


def luma(color: Tensor) -> Tensor:
    return (color * LUMA[:, None, None]).sum(0, keepdim=True)


def chroma_error(found: Tensor, truth: Tensor) -> float:
    """Mean squared error of the chroma, relative to that of a gray picture."""
    found_chroma, true_chroma = found - luma(found), truth - luma(truth)
    return float(((found_chroma - true_chroma) ** 2).mean() / (true_chroma**2).mean())


def test_picture_gets_its_own_colors_back() -> None:
    truth = scene()
    assert chroma_error(psal.colorize(luma(truth), truth, seed=0), truth) < 0.01


def test_shifted_crop_of_the_scene_works_as_reference() -> None:
    wide = scene(95, 141)
    truth, reference = wide[:, 5:88, 13:], wide[:, :90, :117]
    assert chroma_error(psal.colorize(luma(truth), reference, seed=0), truth) < 0.1


def test_crop_at_another_scale_and_exposure_works_as_reference() -> None:
    pixels = torch.from_numpy(skimage.data.astronaut()).movedim(2, 0)[None] / 255
    whole = F.interpolate(pixels, (240, 360), mode="bicubic", antialias=True).clamp(0, 1)
    truth = whole[0, :, :, :240]
    smaller = F.interpolate(whole[:, :, :, 120:], scale_factor=0.87, mode="bilinear", antialias=True)[0]
    # With the local contrast of a wider window, and smaller patches at the coarsest level, this is 0.28.
    assert chroma_error(psal.colorize(luma(truth), smaller**0.85, seed=0, fade=False), truth) < 0.26


@pytest.mark.parametrize(("gamma", "gain"), [(0.6, 1.0), (1.8, 1.0), (1.0, 0.4), (0.7, 0.7), (1.6, 0.8)])
def test_exposure_does_not_matter(gamma: float, gain: float) -> None:
    truth = scene()
    colored = psal.colorize(gain * luma(truth) ** gamma, truth, seed=0)
    # Dark colors have less room for chroma, so compare directions only.
    found, wanted = colored - luma(colored), truth - luma(truth)
    assert F.cosine_similarity(found, wanted, dim=0).mean() > 0.95


def test_8_bit_luminance_stays_as_given() -> None:
    rng = np.random.default_rng(0)
    gray = rng.integers(0, 256, (37, 53), dtype=np.uint8)  # with black and white, where no chroma fits
    reference = rng.integers(0, 256, (41, 29, 3), dtype=np.uint8)
    colored = psal.colorize(gray, reference, seed=0, fade=False)
    assert colored.dtype == np.uint8
    assert colored.shape == (37, 53, 3)
    assert (colored != gray[..., None]).any()
    assert np.array_equal(np.rint(colored @ LUMA.double().numpy()), gray)


def test_float_luminance_stays_as_given() -> None:
    gray = torch.rand(1, 37, 53)
    colored = psal.colorize(gray, torch.rand(3, 30, 31), seed=0)
    assert colored.min() >= 0
    assert colored.max() <= 1
    torch.testing.assert_close(luma(colored), gray, atol=1e-6, rtol=0)


def test_only_the_luminance_of_a_color_picture_is_used() -> None:
    truth, reference = scene(43, 51), scene(57, 40)
    colored = psal.colorize(truth.flip(0), reference, seed=0)
    torch.testing.assert_close(luma(colored), luma(truth.flip(0)), atol=1e-6, rtol=0)
    torch.testing.assert_close(colored, psal.colorize(luma(truth.flip(0)), reference, seed=0))


def test_large_picture_keeps_luminance_and_color_edges() -> None:
    """Pictures this large are matched at a lower resolution; colors must still end at the edges."""
    truth = scene(301, 411)
    colored = psal.colorize(luma(truth), truth, seed=0)
    torch.testing.assert_close(luma(colored), luma(truth), atol=1e-6, rtol=0)
    assert chroma_error(colored, truth) < 0.03


def test_colors_end_at_luminance_edges() -> None:
    """Chroma is found at half the resolution; luminance must locate the edge within such a pixel."""
    y, x = torch.meshgrid(torch.arange(150), torch.arange(170), indexing="ij")
    bright, dark = torch.tensor([0.8, 0.5, 0.3])[:, None, None], torch.tensor([0.1, 0.25, 0.5])[:, None, None]
    truth = bright.where((y // 6 + x // 7) % 2 == 1, dark)
    assert chroma_error(psal.colorize(luma(truth), truth, seed=0), truth) < 0.06


def test_colors_independent_of_luminance_are_faded() -> None:
    generator = torch.Generator().manual_seed(0)
    gray, light = torch.rand(2, 1, 60, 70, generator=generator) * 0.2 + 0.4
    color = torch.tensor([0.2, -0.1, -0.01])[:, None, None]
    color = color - luma(color)
    sign = (torch.rand(1, 60, 70, generator=generator) > 0.5) * 2.0 - 1
    colored = psal.colorize(gray, light + sign * color, seed=0)
    assert (colored - luma(colored)).abs().mean() < 0.12 * color.abs().mean()


@pytest.mark.parametrize(
    ("image", "reference"),
    [
        ((1, 1), (1, 1)),
        ((1, 1), (50, 40)),
        ((40, 50), (1, 1)),
        ((1, 300), (200, 1)),
        ((5, 3), (2, 2)),
        ((400, 7), (9, 330)),
    ],
)
def test_any_sizes_go_together(image: tuple[int, int], reference: tuple[int, int]) -> None:
    gray = torch.rand(1, *image)
    colored = psal.colorize(gray, torch.rand(3, *reference), seed=0)
    assert colored.isfinite().all()
    torch.testing.assert_close(luma(colored), gray, atol=1e-6, rtol=0)


@pytest.mark.parametrize("value", [0.0, 0.5, 1.0])
def test_constant_pictures_take_the_constant_color(value: float) -> None:
    reference = torch.tensor([0.6, 0.5, 0.3])[:, None, None].expand(3, 33, 45)
    colored = psal.colorize(torch.full((1, 130, 140), value), reference, seed=0)
    assert colored.isfinite().all()
    wanted = (reference - luma(reference))[:, :1, :1] * (value == 0.5)
    torch.testing.assert_close(colored, value + wanted.expand_as(colored), atol=1e-5, rtol=0)


def test_picture_type_and_alpha_are_kept(tmp_path: Path) -> None:
    gray = Image.fromarray(np.random.default_rng(0).integers(0, 256, (20, 31), dtype=np.uint8))
    gray.save(tmp_path / "gray.png")
    colors = (scene(25, 30) * 255).byte().movedim(0, 2).numpy()
    from_file = psal.colorize(tmp_path / "gray.png", colors, seed=0)
    assert isinstance(from_file, psal.Photo)
    assert psal.colorize(gray, colors, seed=0).mode == "RGB"
    assert np.array_equal(np.asarray(from_file), psal.colorize(np.asarray(gray), colors, seed=0))
    alpha = torch.rand(1, 20, 31)
    with_alpha = psal.colorize(torch.cat([torch.rand(1, 20, 31), alpha]), colors, seed=0)
    assert with_alpha.shape == (4, 20, 31)
    assert with_alpha[3:].equal(alpha)


def test_same_seed_same_picture() -> None:
    gray, reference = luma(scene(61, 47)), scene(50, 63)
    assert psal.colorize(gray, reference, seed=3).equal(psal.colorize(gray, reference, seed=3))
    torch.manual_seed(5)
    first = psal.colorize(gray, reference)
    torch.manual_seed(5)
    assert psal.colorize(gray, reference).equal(first)


def test_largest_seed_wraps_around() -> None:
    gray, reference = torch.rand(1, 200, 201), torch.rand(3, 199, 203)
    largest = psal.colorize(gray, reference, seed=2**63 - 1)
    assert not largest.equal(psal.colorize(gray, reference, seed=2**63 - 2))


def test_progress_grows_to_one() -> None:
    shares: list[float] = []
    psal.colorize(torch.rand(1, 210, 220), torch.rand(3, 200, 230), seed=0, progress=shares.append)
    assert len(shares) > 1
    assert shares == sorted(shares)
    assert math.isclose(shares[-1], 1)


def test_gray_reference_is_refused() -> None:
    with pytest.raises(ValueError, match="reference must be a color picture"):
        psal.colorize(torch.rand(1, 20, 20), torch.rand(1, 20, 20))


def test_errors_name_the_argument() -> None:
    with pytest.raises(ValueError, match="reference must"):
        psal.colorize(torch.rand(1, 20, 20), torch.rand(3, 20))
    with pytest.raises(TypeError, match="image must"):
        psal.colorize(3, torch.rand(3, 20, 20))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=re.escape("seed must be an int")):
        psal.colorize(torch.rand(1, 20, 20), torch.rand(3, 20, 20), seed=0.5)  # type: ignore[arg-type]


def test_network_restores_most_of_the_color() -> None:
    truth = photograph()
    assert chroma_error(psal.colorize(luma(truth), truth, model="network", seed=0), truth) < 0.3


@pytest.mark.parametrize("side", [100, 129, 181, 257, 400])
def test_network_takes_a_reference_of_any_size(side: int) -> None:
    """Guards against scaling the two pictures differently when only one of them exceeds a size limit."""
    truth = photograph(128, 128)
    reference = F.interpolate(truth[None], (side, side), mode="bicubic", antialias=True)[0].clamp(0, 1)
    assert chroma_error(psal.colorize(luma(truth), reference, model="network", seed=0), truth) < 0.2


@pytest.mark.parametrize(("image", "reference"), [((7, 5), (9, 30)), ((300, 531), (270, 601)), ((1, 1), (2, 3))])
def test_network_keeps_luminance_at_any_size(image: tuple[int, int], reference: tuple[int, int]) -> None:
    gray = torch.rand(1, *image)
    colored = psal.colorize(gray, torch.rand(3, *reference), model="network", seed=0)
    assert colored.shape == (3, *image)
    torch.testing.assert_close(luma(colored), gray, rtol=0, atol=1e-5)


def test_network_gives_the_same_picture_for_the_same_seed() -> None:
    gray, reference = torch.rand(1, 61, 47), torch.rand(3, 50, 53)
    first, again, other = (psal.colorize(gray, reference, model="network", seed=seed, fade=False) for seed in (3, 3, 4))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_unknown_model_is_refused() -> None:
    with pytest.raises(ValueError, match="model must be one of 'patches', 'network', got 'magic'"):
        psal.colorize(torch.rand(1, 9, 9), torch.rand(3, 9, 9), model="magic")
