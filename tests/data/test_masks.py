"""Random holes."""

import pytest
import torch
from support.tolerances import assert_same_bits

from psal.data.masks import KINDS, depth_of, random_hole, random_rectangle, random_strokes


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("size", "window"), [(64, 32), (45, 17), (32, 32)])
def test_holes_leave_known_pixels_unless_the_window_is_the_picture(kind: str, size: int, window: int) -> None:
    for seed in range(40):
        hole = random_hole(kind, size, window, generator(seed))
        assert hole.mask.shape == (size, size)
        assert hole.mask.any()
        assert 0 <= hole.top <= size - window
        assert 0 <= hole.left <= size - window
        assert hole.mask[hole.top : hole.top + window, hole.left : hole.left + window].any()
        if window < size:
            assert hole.mask.float().mean() < 0.6


def test_rectangles_fill_their_window_but_for_an_eighth_on_each_side() -> None:
    sides = set()
    for seed in range(60):
        mask, top, left = random_rectangle(64, 32, generator(seed))
        rows, columns = (mask.any(axis).nonzero() for axis in (1, 0))
        height, width = (int(x.max() - x.min()) + 1 for x in (rows, columns))
        assert int(mask.sum()) == height * width
        assert 24 <= min(height, width) <= max(height, width) <= 32
        assert int(rows.min()) - top == top + 32 - 1 - int(rows.max())  # centered
        assert int(columns.min()) >= left
        sides.add(height)
    assert {24, 32} <= sides


def test_strokes_reach_all_over_the_picture_and_are_not_rectangles() -> None:
    masks = [random_strokes(48, 24, generator(seed)).mask for seed in range(80)]
    assert torch.stack(masks).any(0).float().mean() > 0.98
    filled = [float(x.sum()) / (int(x.any(0).sum()) * int(x.any(1).sum())) for x in masks]
    assert sum(share < 0.9 for share in filled) > 70


def test_the_same_generator_state_gives_the_same_hole() -> None:
    for kind in KINDS:
        first, again = (random_hole(kind, 40, 20, generator(3)) for _ in range(2))
        assert first[1:] == again[1:]
        assert_same_bits(first.mask, again.mask)
    kinds = {int(random_hole("both", 40, 20, generator(seed)).mask.sum()) for seed in range(10)}
    assert len(kinds) > 5


def test_depth_is_the_distance_to_the_nearest_known_pixel() -> None:
    mask = torch.zeros(7, 9, dtype=torch.bool)
    mask[1:6, 2:7] = True
    mask[0, 8] = True
    depth = depth_of(mask)
    assert depth[3, 4] == 3
    assert depth[1, 2] == 1
    assert depth[0, 8] == 1
    assert ((depth > 0) == mask).all()
