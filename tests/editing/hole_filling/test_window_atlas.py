import torch
from support.holes import box_mask

from psal.editing.hole_filling.window_atlas import pack_windows


def test_each_masked_pixel_is_in_the_atlas_once() -> None:
    mask = box_mask(60, 90, (0, 4, 0, 5), (20, 22, 3, 80), (30, 59, 40, 47), (50, 51, 89, 90), (26, 27, 44, 45))
    mask |= torch.eye(60, 90, dtype=torch.bool).roll(9, 0)  # its bounding box contains others
    atlas = pack_windows(mask, 3)
    packed = (atlas.y * 90 + atlas.x)[atlas.gather(mask) & atlas.inside]
    assert torch.nonzero(mask.flatten())[:, 0].equal(packed.sort().values)


def test_windows_have_a_margin() -> None:
    """Guards against a patch that reads pixels of an adjacent window."""
    mask = box_mask(40, 50, (0, 5, 0, 6), (0, 5, 44, 50), (35, 40, 20, 30))
    atlas = pack_windows(mask, 3)
    packed = atlas.gather(mask) & atlas.inside
    y, x = torch.nonzero(packed, as_tuple=True)
    for dy, dx in ((-3, 0), (3, 0), (0, -3), (0, 3)):
        moved = y + dy, x + dx
        same_window = (atlas.y[moved] - atlas.y[packed]).abs() <= 3
        same_window &= (atlas.x[moved] - atlas.x[packed]).abs() <= 3
        assert (same_window | ~atlas.inside[moved]).all()
