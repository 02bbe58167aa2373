from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

import psal


def smooth_noise(height: int, width: int, channels: int = 3) -> Tensor:
    coarse = torch.rand(1, channels, height // 4 + 2, width // 4 + 2)
    return torch.nn.functional.interpolate(coarse, size=(height, width), mode="bicubic")[0].clamp(0, 1)


def psnr(found: Tensor, truth: Tensor) -> float:
    return float(-10 * ((found - truth) ** 2).mean().log10())


def test_picture_is_rebuilt_from_itself() -> None:
    image = smooth_noise(63, 85)
    assert psnr(psal.reconstruct(image, image, seed=0), image) > 60


def test_part_of_a_picture_is_rebuilt_from_the_whole() -> None:
    whole = smooth_noise(75, 93)
    part = whole[:, 11:64, 22:90]
    assert psnr(psal.reconstruct(part, whole, seed=0), part) > 35


def test_only_colors_of_the_reference_are_used() -> None:
    """A mean of the reference's pixels lies within their range."""
    image, reference = torch.rand(3, 41, 37), torch.rand(3, 29, 53) * 0.2 + 0.4
    rebuilt = psal.reconstruct(image, reference, seed=0)
    assert rebuilt.shape == image.shape
    assert rebuilt.min() >= 0.4 - 1e-6
    assert rebuilt.max() <= 0.6 + 1e-6


def test_gray_is_compared_with_color_by_luminance() -> None:
    color = smooth_noise(63, 85)
    gray = (0.299 * color[0] + 0.587 * color[1] + 0.114 * color[2])[None]
    assert psnr(psal.reconstruct(gray, color, seed=0), color) > 35  # the reference's pixels: RGB
    assert psnr(psal.reconstruct(color, gray, seed=0), gray) > 35


@pytest.mark.parametrize(
    ("image", "reference"), [((1, 1), (1, 1)), ((3, 5), (40, 30)), ((40, 30), (1, 2)), ((1, 90), (70, 1))]
)
def test_any_sizes_go_together(image: tuple[int, int], reference: tuple[int, int]) -> None:
    rebuilt, shifts = psal.reconstruct(torch.rand(3, *image), torch.rand(3, *reference), seed=0, return_shifts=True)
    assert rebuilt.shape == shifts.shape == (3, *image)
    assert rebuilt.isfinite().all()
    assert shifts.isfinite().all()


def test_constant_pictures_stay_constant() -> None:
    image = torch.full((3, 30, 41), 0.25)
    torch.testing.assert_close(psal.reconstruct(image, image, seed=0), image)


def test_picture_type_is_kept(tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (20, 31, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "image.png")
    array = psal.reconstruct(pixels, pixels[:, ::-1], seed=0)
    assert array.dtype == np.uint8
    rebuilt, shifts = psal.reconstruct(tmp_path / "image.png", pixels[:, ::-1], seed=0, return_shifts=True)
    assert isinstance(rebuilt, psal.Photo)
    assert isinstance(shifts, psal.Photo)
    assert np.array_equal(rebuilt, array)
    assert shifts.pixels.shape == (20, 31, 3)


def test_same_seed_same_picture() -> None:
    image, reference = torch.rand(3, 61, 47), torch.rand(3, 50, 63)
    assert psal.reconstruct(image, reference, seed=3).equal(psal.reconstruct(image, reference, seed=3))


def test_progress_grows_to_one() -> None:
    shares: list[float] = []
    psal.reconstruct(torch.rand(3, 21, 22), torch.rand(3, 20, 23), seed=0, progress=shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == 1


def test_errors_name_the_argument() -> None:
    with pytest.raises(ValueError, match="reference must"):
        psal.reconstruct(torch.rand(3, 20, 20), torch.rand(5, 20, 20))
    with pytest.raises(TypeError, match="seed must be an int"):
        psal.reconstruct(torch.rand(3, 20, 20), torch.rand(3, 20, 20), seed="0")  # type: ignore[call-overload]
