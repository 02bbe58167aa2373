import pytest
import torch
from support.holes import box_mask
from torch import Tensor

from psal.editing.hole_filling.masked_pyramid import CHROMA_WEIGHT, Level, build_pyramid


def test_hole_does_not_bleed_into_known_pixels() -> None:
    color, hole = torch.full((3, 41, 37), 0.3), box_mask(41, 37, (10, 23, 9, 30))
    color[:, hole] = 1.0
    for level in build_pyramid(color, hole, 4):
        known = level.color[:, level.known]
        torch.testing.assert_close(known, torch.full_like(known, 0.3))
        rows, columns = (slice(0, size) for size in level.known.shape)
        assert level.features(rows, columns)[3:, level.known].abs().max() < 1e-5  # no texture at the hole's border


def test_strips_do_not_show() -> None:
    """Guards against strips that differ from one piece: texture needs the row below."""
    color = torch.rand(3, 600, 20, generator=torch.Generator().manual_seed(0))
    hole = box_mask(600, 20, (100, 130, 5, 10))
    whole, shifted = (build_pyramid(x, y, 2)[1] for x, y in ((color, hole), (color[:, 2:], hole[2:])))
    torch.testing.assert_close(whole.roughness[:, 1:], shifted.roughness)  # type: ignore[index]
    torch.testing.assert_close(whole.color[:, 1:], shifted.color)


def test_coarse_pixel_is_known_if_half_of_it_is() -> None:
    hole = torch.tensor([[1, 0, 1, 1], [1, 0, 0, 1]], dtype=torch.bool)
    assert build_pyramid(torch.rand(1, 2, 4), hole, 2)[1].known.tolist() == [[True, False]]


def colors_compared(color: Tensor) -> Tensor:
    """Color channels of the features of an image without a hole."""
    known = torch.ones(color.shape[1:], dtype=torch.bool)
    return Level(color, None, known, known).features(slice(None), slice(None))[:-2]


@pytest.mark.parametrize("channels", [1, 3])
def test_brightness_counts_as_it_is(channels: int) -> None:
    gray = torch.rand(1, 9, 11, generator=torch.Generator().manual_seed(0)).expand(channels, -1, -1)
    torch.testing.assert_close(colors_compared(gray), gray)


def test_hue_counts_more_than_brightness() -> None:
    color = torch.rand(3, 9, 11, generator=torch.Generator().manual_seed(0))
    before = color.clone()
    gray = color.mean(0)
    torch.testing.assert_close(colors_compared(color) - gray, CHROMA_WEIGHT * (color - gray))
    assert color.equal(before)
