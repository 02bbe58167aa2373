"""PSNR and SSIM of Y against values computed by hand and by definition."""

import math

import pytest
import torch
import torch.nn.functional as F

from psal.measure.picture_quality import luma, psnr_of_luma, ssim_of_luma


def picture(height: int = 21, width: int = 27) -> torch.Tensor:
    return torch.randint(0, 256, (3, height, width), dtype=torch.uint8)


def test_luma_of_black_white_and_the_primaries() -> None:
    colors = torch.tensor([[0, 0, 0], [255, 255, 255], [255, 0, 0], [0, 255, 0], [0, 0, 255]], dtype=torch.uint8)
    found = luma(colors.T[:, None]).flatten().tolist()
    assert found == pytest.approx([16, 235, 81.481, 144.553, 40.966])


def test_psnr_of_a_constant_error() -> None:
    original = torch.full((3, 9, 9), 100, dtype=torch.uint8)
    error = 219 * 5 / 255  # of Y, for 5 levels of gray
    assert psnr_of_luma(original + 5, original, border=1) == pytest.approx(20 * math.log10(255 / error))
    assert psnr_of_luma(original, original, border=1) == math.inf


def test_the_border_does_not_count() -> None:
    original = picture()
    changed = original.clone()
    changed[:, :3] = changed[:, -3:] = 0
    changed[:, :, :3] = changed[:, :, -3:] = 0
    assert psnr_of_luma(changed, original, border=3) == math.inf
    assert ssim_of_luma(changed, original, border=3) == pytest.approx(1)
    assert psnr_of_luma(changed, original, border=2) < 40


def test_ssim_is_that_of_its_authors() -> None:
    image, original = picture(), picture()
    x, y = (luma(each)[2:-2, 2:-2][None, None] for each in (image, original))
    axis = torch.exp(-(torch.arange(-5, 6, dtype=torch.float64) ** 2) / (2 * 1.5**2))
    window = (axis[:, None] * axis / axis.sum() ** 2)[None, None]
    mean_x, mean_y, xx, yy, xy = (F.conv2d(each, window) for each in (x, y, x * x, y * y, x * y))
    one, two = (0.01 * 255) ** 2, (0.03 * 255) ** 2
    similar = (2 * mean_x * mean_y + one) / (mean_x**2 + mean_y**2 + one)
    structure = (2 * (xy - mean_x * mean_y) + two) / (xx - mean_x**2 + yy - mean_y**2 + two)
    assert ssim_of_luma(image, original, border=2) == pytest.approx((similar * structure).mean().item(), abs=1e-9)
