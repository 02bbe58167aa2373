"""Downscaling as MATLAB's imresize: known weights, the border, rounding, and Pillow in the interior."""

import numpy as np
import pytest
import torch
from PIL import Image
from support.tolerances import assert_close
from torch import Tensor

from psal.data.degradation import downscale

# Weights of one half of the kernel: its polynomials at the distances of large pixels, in small ones, over their sum.
HALF = (111, 29, -9, -3)  # / 256; scale 2, distances 1/4, 3/4, 5/4, 7/4
THIRD = (27, 21, 9, 0, -2, -1)  # / 81; scale 3, distances 0, 1/3, 2/3, 1, 4/3, 5/3
QUARTER = (987, 745, 399, 93, -49, -75, -45, -7)  # / 4096; scale 4, distances 1/8, 3/8, … 15/8


def response(scale: int, size: int, at: int) -> Tensor:
    """The small picture of a single bright row."""
    image = torch.zeros(size, 1, dtype=torch.float64)
    image[at] = 1
    return downscale(image.expand(size, scale), scale)[:, 0]


@pytest.mark.parametrize(
    ("scale", "weights", "denominator"),
    [(2, [*HALF[::-1], *HALF], 256), (3, [*THIRD[:0:-1], *THIRD], 81), (4, [*QUARTER[::-1], *QUARTER], 4096)],
)
def test_weights_are_those_of_the_stretched_cubic_kernel(scale: int, weights: list[int], denominator: int) -> None:
    assert sum(weights) == denominator
    size, middle = 20 * scale, 10  # small pixel whose window lies inside
    first = scale * middle + scale // 2 - len(weights) // 2
    found = torch.stack([response(scale, size, first + tap)[middle] for tap in range(-1, len(weights) + 1)])
    expected = torch.tensor([0, *weights, 0], dtype=torch.float64) / denominator
    assert_close(found, expected)


def test_the_border_is_mirrored_with_its_pixels_repeated() -> None:
    column = torch.rand(14, 1, dtype=torch.float64)
    mirrored = torch.cat([column.flip(0), column, column.flip(0)])
    assert_close(downscale(column, 2), downscale(mirrored, 2)[7:14])
    # Small pixel 0 sees the large pixels −3 … 4, which are 2, 1, 0, 0, 1, 2, 3, 4.
    found = torch.stack([response(2, 14, pixel)[0] for pixel in range(5)])
    by_hand = [29 + 111, -9 + 111, -3 + 29, -9, -3]
    assert_close(found, torch.tensor(by_hand, dtype=torch.float64) / 256)


@pytest.mark.parametrize("scale", [2, 3, 4])
def test_pillow_gives_the_same_inside(scale: int) -> None:
    pixels = np.random.default_rng(0).random((30 * scale, 24 * scale), np.float32)
    theirs = Image.fromarray(pixels).resize((24, 30), Image.Resampling.BICUBIC)
    difference = (downscale(torch.from_numpy(pixels), scale) - torch.from_numpy(np.asarray(theirs).copy())).abs()
    assert difference[2:-2, 2:-2].max() < 1e-6
    assert difference[:2].max() > 1e-3


def test_sides_are_rounded_up() -> None:
    assert downscale(torch.rand(1, 3, 7, 10), 3).shape == (1, 3, 3, 4)
    assert downscale(torch.rand(1, 1), 4).shape == (1, 1)


def test_8_bits_are_rounded_half_up() -> None:
    step = torch.zeros(32, 2, dtype=torch.uint8)
    step[17:] = 1  # small pixel 8 sees 111 + 29 − 9 − 3 = 128 of 256
    assert downscale(step.double(), 2)[8, 0] == 0.5
    assert downscale(step, 2)[:, 0].tolist() == [0] * 8 + [1] * 8


def test_8_bits_are_rounded_after_the_rows() -> None:
    image = torch.randint(0, 256, (3, 21, 18), dtype=torch.uint8)
    rounded = torch.stack([downscale(image[:, :, column : column + 1], 2)[:, :, 0] for column in range(18)], 2)
    columns = torch.stack([downscale(rounded[:, row : row + 1], 2)[:, 0] for row in range(11)], 1)
    assert downscale(image, 2).equal(columns)


def test_a_constant_stays_constant() -> None:
    for scale in (2, 3, 4):
        assert (downscale(torch.full((9, 11), 77, dtype=torch.uint8), scale) == 77).all()


def test_integers_of_other_types_are_refused() -> None:
    with pytest.raises(TypeError, match=r"image must be uint8 or floating point, got torch\.int64"):
        downscale(torch.zeros(4, 4, dtype=torch.int64), 2)
