"""Several references, hints, and fading to gray."""

import re
from typing import Any

import numpy as np
import pytest
import skimage.data
import torch
import torch.nn.functional as F
from torch import Tensor

import psal

LUMA = torch.tensor([0.299, 0.587, 0.114])


def luma(color: Tensor) -> Tensor:
    return (color * LUMA[:, None, None]).sum(0, keepdim=True)


def photograph(name: str, height: int, width: int) -> Tensor:
    pixels = torch.from_numpy(getattr(skimage.data, name)()).movedim(2, 0)[None] / 255
    return F.interpolate(pixels, (height, width), mode="bicubic", antialias=True)[0].clamp(0, 1)


def error(found: Tensor, truth: Tensor) -> float:
    """Mean squared error relative to that of a gray picture."""
    return float((found - truth).square().mean() / (truth - luma(truth)).square().mean())


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_each_part_takes_its_color_from_the_reference_that_shows_it(order: tuple[int, int]) -> None:
    left, right = photograph("coffee", 130, 121), photograph("chelsea", 130, 103)
    truth = torch.cat([left, right], dim=2)
    references = tuple([left, right][number] for number in order)
    both = error(psal.colorize(luma(truth), references, seed=0, fade=False), truth)
    alone = [error(psal.colorize(luma(truth), one, seed=0, fade=False), truth) for one in references]
    assert both < 0.1
    assert both < 0.3 * min(alone)


def test_a_list_of_one_reference_is_that_reference() -> None:
    truth = photograph("coffee", 83, 101)
    assert psal.colorize(luma(truth), [truth], seed=0).equal(psal.colorize(luma(truth), truth, seed=0))


def test_a_photograph_of_something_else_leaves_it_gray() -> None:
    gray, other = luma(photograph("coffee", 133, 151)), photograph("astronaut", 141, 127)
    assert psal.colorize(gray, other, seed=0).equal(gray.expand(3, -1, -1))
    assert not psal.colorize(gray, other, seed=0, fade=False).equal(gray.expand(3, -1, -1))


def test_another_crop_of_the_scene_is_not_faded() -> None:
    whole = photograph("coffee", 161, 187)
    truth, reference = whole[:, 12:, :171], whole[:, :150, 14:]
    full, faded = (psal.colorize(luma(truth), reference, seed=0, fade=fade) for fade in (False, True))
    assert faded.equal(full)
    assert error(faded, truth) < 0.1


def regions() -> tuple[Tensor, Tensor, Tensor]:
    """A gray picture of two regions, a red and blue pair of strokes over it, and the weight of red."""
    gray = torch.full((1, 61, 83), 0.4)
    gray[:, :, 40:] = 0.6
    painted = gray.expand(3, -1, -1).clone()
    painted[:, 25:35, 10:14] = torch.tensor([0.8, 0.2, 0.2])[:, None, None]
    painted[:, 25:35, 66:70] = torch.tensor([0.3, 0.4, 0.9])[:, None, None]
    return gray, painted, gray[0] < 0.5


def test_strokes_color_what_looks_alike_around_them() -> None:
    gray, painted, left = regions()
    reference = torch.tensor([0.3, 0.6, 0.3])[:, None, None].expand(3, 40, 50)
    colored = psal.colorize(gray, reference, hints=painted, seed=0)
    torch.testing.assert_close(luma(colored), gray, rtol=0, atol=1e-5)
    more_red = colored[0] - colored[2]
    near = torch.zeros_like(left)
    near[20:40] = True
    assert (more_red[left & near] > 0.1).all()
    assert (more_red[~left & near] < -0.1).all()


def test_strokes_on_a_transparent_layer_are_the_same() -> None:
    gray, painted, _ = regions()
    reference = torch.rand(3, 40, 50)
    alpha = (painted != gray).any(0, keepdim=True).float()
    layer = torch.cat([painted * alpha, alpha])
    over = psal.colorize(gray, reference, hints=painted, seed=0)
    torch.testing.assert_close(psal.colorize(gray, reference, hints=layer, seed=0), over, rtol=0, atol=1e-4)


def test_hints_bring_a_wrong_color_closer_to_the_truth() -> None:
    truth = photograph("coffee", 121, 143)
    painted = luma(truth).expand(3, -1, -1).clone()
    for y in range(10, 121, 25):
        for x in range(10, 143, 25):
            painted[:, y : y + 4, x : x + 4] = truth[:, y : y + 4, x : x + 4]
    other = photograph("astronaut", 121, 143)
    with_hints = error(psal.colorize(luma(truth), other, hints=painted, seed=0), truth)
    assert with_hints < 0.4  # gray is 1


def test_hints_work_with_the_network() -> None:
    gray, painted, left = regions()
    colored = psal.colorize(gray, torch.rand(3, 40, 50), hints=painted, model="network", seed=0)
    assert (colored[0] - colored[2])[25:35][left[25:35]].mean() > 0.1


COLOR, GRAY = np.zeros((20, 24, 3), np.uint8), np.zeros((20, 24), np.uint8)


@pytest.mark.parametrize(
    ("reference", "options", "words"),
    [
        ([], {}, "reference must be one color picture or several, got an empty list"),
        ([COLOR, GRAY], {}, "reference[1] must be a color picture, got a gray one"),
        ([COLOR, COLOR], {"model": "network"}, "model='network' takes one reference, got 2"),
        (COLOR, {"hints": GRAY}, "hints must be a color picture"),
        (COLOR, {"hints": COLOR[:, 1:]}, "hints must have the size of the picture, 24 × 20 pixels, got 23 × 20"),
        (COLOR, {"hints": COLOR}, "hints have no strokes"),
    ],
)
def test_errors_say_what_is_wrong(reference: Any, options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        psal.colorize(GRAY, reference, **options)
