import pytest
import torch
from torch import Tensor

import psal

HEIGHT, WIDTH = 29, 37


def crop(noise: Tensor, top: int, left: int) -> Tensor:
    return noise[:, top : top + HEIGHT, left : left + WIDTH]


@pytest.mark.parametrize(
    ("shift", "color"),
    [
        ((0, 6), (255, 0, 0)),  # right: red
        ((6, 0), (128, 255, 0)),  # down: yellow-green
        ((0, -6), (0, 255, 255)),  # left: cyan
        ((-6, 0), (128, 0, 255)),  # up: violet
    ],
)
def test_hue_is_the_direction_of_the_match(shift: tuple[int, int], color: tuple[int, int, int]) -> None:
    """Two crops of one noise picture: in their overlap all pixels have the same shift."""
    noise = torch.rand(3, HEIGHT + 6, WIDTH + 6)
    down, right = shift
    image = crop(noise, max(down, 0), max(right, 0))
    reference = crop(noise, max(-down, 0), max(-right, 0))
    # Pixel (y, x) of the image is pixel (y + down, x + right) of the reference.
    _, picture = psal.reconstruct(image, reference, seed=0, return_shifts=True)
    inside = (picture * 255).round()[:, 10:-10, 10:-10]
    # Matches outside the overlap may have longer shifts, which makes the others paler but keeps their hue.
    strength = (255 - inside).amax(0) / 255
    expected = 255 - (255 - torch.tensor(color, dtype=torch.float32)[:, None, None]) * strength
    torch.testing.assert_close(inside, expected, atol=2, rtol=0)
    assert strength.min() > 0.05


def test_no_shift_is_white() -> None:
    image = torch.rand(3, HEIGHT, WIDTH)
    _, picture = psal.reconstruct(image, image, seed=0, return_shifts=True)
    assert picture.eq(1).all()


def test_longer_shift_is_more_saturated() -> None:
    """The left half of the reference is shifted by two pixels, the right half by eight."""
    image = torch.rand(3, 31, 80)
    reference = torch.cat([image[:, :, :40].roll(2, 2), image[:, :, 40:].roll(8, 2)], 2)
    _, picture = psal.reconstruct(image, reference, seed=0, return_shifts=True)
    near, far = (1 - picture[:, 10:20, columns].amin(0) for columns in (slice(12, 28), slice(48, 62)))
    assert near.min() > 0
    assert far.min() > 2 * near.max()
