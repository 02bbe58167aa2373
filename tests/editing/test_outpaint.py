"""A picture grows by as many pixels as asked for, and stays what it was inside."""

from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import psal


def waves(height: int, width: int) -> torch.Tensor:
    y, x = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    return (
        torch.stack([torch.sin(x * (2 * torch.pi / 8)), torch.sin(y * (2 * torch.pi / 12))]).mean(0)[None] * 0.4 + 0.5
    )


@pytest.mark.parametrize(
    "sides", [(13, 0, 0, 0), (0, 9, 0, 0), (0, 0, 21, 0), (0, 0, 0, 5), (7, 11, 3, 17), (1, 1, 1, 1)]
)
def test_a_periodic_texture_goes_on_and_the_inside_is_unchanged(sides: tuple[int, int, int, int]) -> None:
    left, right, top, bottom = sides
    truth = waves(61 + top + bottom, 67 + left + right)
    image = truth[:, top : top + 61, left : left + 67]
    wider = psal.outpaint(image, *sides, seed=0)
    assert wider.shape == truth.shape
    assert wider[:, top : top + 61, left : left + 67].equal(image)
    assert (wider - truth).square().mean() < 2e-3


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_integers_and_alpha_stay_bit_for_bit(channels: int, dtype: type) -> None:
    image = np.random.default_rng(0).integers(0, np.iinfo(dtype).max, (31, 29, channels), dtype=dtype, endpoint=True)
    wider = psal.outpaint(image, left=6, bottom=5, seed=0)
    assert (wider.shape, wider.dtype) == ((36, 35, channels), dtype)
    np.testing.assert_array_equal(wider[:31, 6:], image)
    if channels in (2, 4):
        np.testing.assert_array_equal(wider[:31, 0, -1], image[:, 0, -1])


def test_pillow_in_pillow_out_and_no_side_is_a_copy() -> None:
    image = Image.effect_noise((40, 30), 80)
    assert psal.outpaint(image, right=10, seed=0).size == (50, 30)
    assert psal.outpaint(image).tobytes() == image.tobytes()


def test_one_seed_one_result() -> None:
    image = torch.rand(3, 40, 42, generator=torch.Generator().manual_seed(0))
    assert psal.outpaint(image, 9, seed=3).equal(psal.outpaint(image, 9, seed=3))
    assert not psal.outpaint(image, 9, seed=3).equal(psal.outpaint(image, 9, seed=4))


@pytest.mark.parametrize(
    ("size", "sides", "error", "words"),
    [
        ((20, 20), {"left": -1}, ValueError, "left must be at least 0, got -1"),
        ((20, 20), {"top": 1.5}, TypeError, "top must be an int, got 1.5"),
        ((6, 20), {"top": 3}, ValueError, "image must be at least 7 × 7 pixels"),
        ((20, 20), {"right": 10**8}, ValueError, "the result would have 2000 megapixels, but at most 500"),
    ],
)
def test_wrong_arguments_are_named(
    size: tuple[int, int], sides: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        psal.outpaint(torch.rand(1, *size), **sides)
