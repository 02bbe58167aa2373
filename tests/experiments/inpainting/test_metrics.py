"""Metrics of filled pictures."""

import math

import pytest
import torch
from support.holes import box_mask
from torch import Tensor

from psal.experiments.inpainting.lpips import LPIPS
from psal.experiments.inpainting.metrics import METRICS, interval, score, summary


def example(height: int = 37, width: int = 52) -> tuple[Tensor, Tensor]:
    return torch.rand(1, 3, height, width), box_mask(height, width, (9, 20, 14, 31))[None, None]


def test_errors_are_those_of_the_hole() -> None:
    truth, hole = example()
    truth = truth * 0.5
    filled = torch.where(hole, truth + 0.1, truth)
    filled[..., 10, 20] += 0.2
    error = torch.full((11 * 17,), 0.1).double()
    error[0] = 0.3
    found = score(filled, truth, hole)
    l2 = error.square().mean().item()
    assert math.isclose(found["l1"], 100 * error.mean().item(), rel_tol=1e-5)
    assert math.isclose(found["l2"], 100 * l2, rel_tol=1e-5)
    assert math.isclose(found["psnr"], -10 * math.log10(l2), rel_tol=1e-5)
    assert set(found) == set(METRICS) - {"lpips"}


def test_an_exact_fill_has_no_error() -> None:
    truth, hole = example()
    found = score(truth, truth, hole)
    assert (found["l1"], found["l2"], found["psnr"]) == (0, 0, 100)
    assert math.isclose(found["ssim"], 100, rel_tol=1e-4)


def test_total_variation_needs_no_truth() -> None:
    truth, hole = example()
    ramp = torch.arange(52).expand(1, 3, 37, 52) / 100 + torch.arange(37)[:, None] / 200
    assert math.isclose(score(ramp, truth, hole)["tv"], 1.5, rel_tol=1e-4)
    flat = torch.zeros_like(truth)
    assert score(flat, truth, hole)["tv"] == 0


def test_total_variation_ends_at_the_border_of_the_picture() -> None:
    hole = box_mask(16, 16, (8, 16, 8, 16))[None, None]
    ramp = torch.arange(16).expand(1, 3, 16, 16) / 16
    assert math.isclose(score(ramp, ramp, hole)["tv"], 100 * 7 / 8 / 16, rel_tol=1e-4)


def test_similarity_falls_with_noise() -> None:
    truth, hole = example()
    noise = torch.randn_like(truth)
    levels = [score((truth + level * noise).clamp(0, 1), truth, hole)["ssim"] for level in (0.02, 0.1, 0.4)]
    assert levels == sorted(levels, reverse=True)


@pytest.mark.parametrize("size", [(37, 52), (80, 65)])
def test_the_perceptual_distance_is_that_of_the_whole_picture(size: tuple[int, int]) -> None:
    truth, hole = example(*size)
    lpips = LPIPS()
    filled = torch.where(hole, 1 - truth, truth)
    found = score(filled, truth, hole, lpips)
    assert found["lpips"] > 0
    assert score(truth, truth, hole, lpips)["lpips"] == 0


def test_the_interval_covers_the_mean_and_shrinks_with_more_pictures() -> None:
    values = torch.randn(400, generator=torch.Generator().manual_seed(0)).double()
    few, many = interval(values[:20].tolist()), interval(values.tolist())
    for (low, high), part in ((few, values[:20]), (many, values)):
        assert low < part.mean() < high
    assert many[1] - many[0] < 0.5 * (few[1] - few[0])
    assert math.isclose(many[1] - many[0], 2 * 1.96 / 20, rel_tol=0.1)
    assert interval(values.tolist()) == many
    assert summary("psnr", [20.0, 30.0]) == "25.00 (20.00 to 30.00)"
