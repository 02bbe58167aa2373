import torch
from support.holes import box_mask

import psal
from psal.editing.hole_filling.hole_windows import hole_windows


def test_small_holes_of_a_large_picture_get_windows_of_their_own() -> None:
    hole = box_mask(1501, 4003, (700, 720, 300, 331), (40, 90, 3600, 3640), (1400, 1420, 3900, 3910))
    windows = hole_windows(hole)
    assert windows is not None
    covered = torch.zeros_like(hole, dtype=torch.int64)
    for top, bottom, left, right in windows:
        covered[top:bottom, left:right] += 1
    assert covered.max() == 1
    assert (covered[hole] == 1).all()
    assert covered.sum() < 0.7 * hole.numel()


def test_a_small_picture_and_a_hole_without_surroundings_are_searched_whole() -> None:
    assert hole_windows(box_mask(600, 700, (10, 20, 10, 20))) is None
    frame = torch.ones(1500, 1501, dtype=torch.bool)
    frame[700:800, 700:800] = False
    assert hole_windows(frame) is None


def test_sources_lie_near_a_small_hole_of_a_large_picture() -> None:
    image = torch.rand(1, 1203, 2405, generator=torch.Generator().manual_seed(0))
    hole = box_mask(1203, 2405, (500, 523, 200, 231), (1100, 1120, 2300, 2310))
    filled, shifts = psal.inpaint(image, hole, seed=0, return_shifts=True)
    assert filled[:, ~hole].equal(image[:, ~hole])
    target, source = (torch.from_numpy(x) for x in (shifts.target, shifts.source))
    assert target.equal(torch.nonzero(hole.flatten())[:, 0])
    assert not hole.flatten()[source].any()
    assert ((target % 2405) - (source % 2405)).abs().max() < 640
