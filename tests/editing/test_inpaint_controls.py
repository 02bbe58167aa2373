"""Where patches come from, what leads them, and how a mask is changed first."""

import numpy as np
import pytest
import torch
from PIL import Image, ImageFilter
from support.holes import box_mask
from torch import Tensor

import psal
from psal.editing.mask_edges import fade_edge, grow_mask


def noise(height: int, width: int, channels: int = 3) -> Tensor:
    return torch.rand(channels, height, width, generator=torch.Generator().manual_seed(0))


def two_colors(height: int, width: int) -> Tensor:
    """Grain, reddish on the left half and bluish on the right."""
    image = noise(height, width) * 0.2
    image[0, :, : width // 2] += 0.6
    image[2, :, width // 2 :] += 0.6
    return image


@pytest.mark.parametrize(
    "source",
    [
        [(0, 71, 60, 83)],
        [(2, 9, 3, 10)],
        [(0, 12, 0, 83), (55, 71, 40, 47)],
        [(15, 40, 10, 45)],
    ],
    ids=["right", "one patch", "two parts", "touches the hole"],
)
def test_no_pixel_comes_from_outside_the_source(source: list[tuple[int, int, int, int]]) -> None:
    image, hole, allowed = noise(71, 83), box_mask(71, 83, (20, 50, 20, 55)), box_mask(71, 83, *source)
    filled, shifts = psal.inpaint(image, hole, seed=0, source_mask=allowed, return_shifts=True)
    taken = torch.from_numpy(shifts.source)
    assert (allowed & ~hole).flatten()[taken].all()
    assert filled[:, ~hole].equal(image[:, ~hole])


def test_only_the_colors_of_the_source_fill_the_hole() -> None:
    image, hole = two_colors(70, 90), box_mask(70, 90, (25, 45, 10, 30))
    filled = psal.inpaint(image, hole, seed=0, source_mask=box_mask(70, 90, (0, 70, 46, 90)), return_shifts=True)
    assert (torch.from_numpy(filled[1].source) % 90 >= 46).all()


def test_a_source_of_all_pixels_changes_nothing() -> None:
    image, hole = noise(50, 61), box_mask(50, 61, (10, 30, 12, 40))
    everywhere = torch.ones(50, 61, dtype=torch.bool)
    assert psal.inpaint(image, hole, seed=0, source_mask=everywhere).equal(psal.inpaint(image, hole, seed=0))


def test_a_source_without_a_patch_is_refused() -> None:
    hole = box_mask(40, 41, (10, 20, 10, 20))
    with pytest.raises(ValueError, match="source_mask must leave at least one patch of 7 × 7 pixels outside the hole"):
        psal.inpaint(noise(40, 41), hole, source_mask=box_mask(40, 41, (9, 21, 8, 21)))
    with pytest.raises(ValueError, match="source_mask is 40 × 41 pixels and the picture 41 × 40"):
        psal.inpaint(noise(40, 41), hole, source_mask=box_mask(41, 40, (0, 41, 0, 40)))


@pytest.mark.parametrize("hue", [0, 2])
def test_a_guide_decides_what_fills_the_hole(hue: int) -> None:
    """The hole lies between both colors: the guide, flat and without texture, says which it shall be."""
    image, hole = two_colors(96, 128), box_mask(96, 128, (20, 76, 36, 92))
    guide = torch.full((3, 96, 128), 0.1)
    guide[hue] += 0.6
    filled, shifts = psal.inpaint(image, hole, seed=0, guide=guide, return_shifts=True)
    assert filled[:, ~hole].equal(image[:, ~hole])
    from_left = (torch.from_numpy(shifts.source) % 128 < 64).float().mean()
    assert from_left > 0.65 if hue == 0 else from_left < 0.35
    assert filled[1, hole].std() > 0.6 * image[1].std()  # the photograph's grain, not the guide's flat color


def test_a_blurred_truth_guides_to_a_closer_fill() -> None:
    from skimage.data import astronaut

    photo = np.asarray(Image.fromarray(astronaut()).resize((256, 256)))
    blurred = np.asarray(Image.fromarray(photo).filter(ImageFilter.BoxBlur(6)))
    hole = box_mask(256, 256, (90, 170, 60, 150)).numpy()
    errors = []
    for guide in (None, blurred):
        filled = psal.inpaint(photo, hole, seed=0, guide=guide)
        errors.append(float(((filled[hole] / 255 - photo[hole] / 255) ** 2).mean()))
    assert errors[1] < 0.7 * errors[0]


@pytest.mark.parametrize(("picture", "guided"), [(1, 3), (3, 1), (4, 4)])
def test_a_guide_may_have_other_channels(picture: int, guided: int) -> None:
    image, hole = noise(40, 45, picture), box_mask(40, 45, (10, 25, 12, 30))
    assert psal.inpaint(image, hole, seed=0, guide=noise(40, 45, guided)).shape == image.shape


def test_values_of_the_guide_outside_the_hole_are_ignored() -> None:
    image, hole, guide = noise(50, 52), box_mask(50, 52, (10, 35, 12, 40)), noise(50, 52).flip(0)
    other = guide.clone()
    other[:, ~hole] = 1
    assert psal.inpaint(image, hole, seed=0, guide=guide).equal(psal.inpaint(image, hole, seed=0, guide=other))


def test_a_guide_of_another_size_is_refused() -> None:
    with pytest.raises(ValueError, match="guide is 31 × 20 pixels and the picture 30 × 20: they must have the same"):
        psal.inpaint(noise(20, 30), box_mask(20, 30, (5, 9, 5, 9)), guide=noise(20, 31))


def test_grow_and_invert_change_the_hole() -> None:
    image, hole = noise(40, 41), box_mask(40, 41, (10, 20, 12, 22))
    grown = box_mask(40, 41, (10, 20, 9, 25), (7, 23, 12, 22))  # and parts of the corners
    _, shifts = psal.inpaint(image, ~hole, seed=0, invert=True, grow=3, return_shifts=True)
    filled = torch.zeros(40 * 41, dtype=torch.bool)
    filled[torch.from_numpy(shifts.target)] = True
    assert filled.view(40, 41)[grown].all()
    assert filled.sum() == grow_mask(hole, 3).sum()
    assert not filled.view(40, 41)[7, 9]


def test_a_feathered_fill_fades_into_the_picture_and_covers_the_hole() -> None:
    image, hole = noise(60, 61), box_mask(60, 61, (20, 35, 22, 40))
    filled = psal.inpaint(image, hole, seed=0, feather=5)
    opacity = fade_edge(hole, 5)
    assert (opacity[hole] == 1).all()
    edge = (opacity > 0) & ~hole
    sharp = psal.inpaint(image, opacity > 0, seed=0)
    torch.testing.assert_close(filled, torch.lerp(image, sharp, opacity))
    assert filled[:, opacity == 0].equal(image[:, opacity == 0])
    assert not filled[:, edge].equal(sharp[:, edge])
    assert opacity[27, 17:22].tolist() == pytest.approx([1 / 6, 2 / 6, 3 / 6, 4 / 6, 5 / 6])


def test_no_mask_takes_the_transparent_pixels_which_become_opaque() -> None:
    image, hole = noise(40, 41, 4), box_mask(40, 41, (10, 20, 12, 22))
    image[3] = 0.9
    image[3, hole] = 0.2
    filled = psal.inpaint(image, None, seed=0)
    assert (filled[3, hole] == 1).all()
    assert filled[:, ~hole].equal(image[:, ~hole])
    assert filled[:3].equal(psal.inpaint(image[:3], hole, seed=0))
    with pytest.raises(ValueError, match="image has no alpha to take a mask from"):
        psal.inpaint(image[:3], None)


@pytest.mark.parametrize("name", ["grow", "feather"])
def test_a_width_that_makes_no_sense_is_refused(name: str) -> None:
    arguments = noise(20, 21), box_mask(20, 21, (5, 9, 5, 9))
    for value, error in ((-1, ValueError), (1001, ValueError), (1.5, TypeError), (True, TypeError)):
        with pytest.raises(error, match=name):
            psal.inpaint(*arguments, **{name: value})  # type: ignore[call-overload]
