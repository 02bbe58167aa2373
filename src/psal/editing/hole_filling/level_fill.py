"""State of a fill at one pyramid level."""

from dataclasses import dataclass

import torch
from torch import Tensor

from psal.editing.hole_filling.hole_geometry import PATCH_RADIUS, hole_depth, patches_touching, valid_keys
from psal.editing.hole_filling.masked_pyramid import Level
from psal.editing.hole_filling.window_atlas import WindowAtlas, pack_windows, take


@dataclass(frozen=True)
class Region:
    """Rows ``top`` to ``bottom`` and columns ``left`` to ``right`` of a level; the ends are excluded."""

    top: int
    left: int
    bottom: int
    right: int

    @property
    def slices(self) -> tuple[slice, slice]:
        return slice(self.top, self.bottom), slice(self.left, self.right)


@dataclass(frozen=True)
class LevelFill:
    """Colors and matches of a hole while it is filled.

    Maps ``[H, W]`` cover the searched region of the level; maps ``[h, w]`` cover the window atlas around the hole, with
    all queries. Match indices are flat positions in the region.
    """

    region: Region
    keys: Tensor  # [C + 1, H, W]: features − ½, which loses less to cancellation, and the sum of their squares
    valid_keys: Tensor  # bool [H, W], patches of pixels that may all be copied
    atlas: WindowAtlas  # of the region
    channels: Tensor  # [C, h, w], features − ½: known pixels and the current fill
    hole: Tensor  # bool [h, w]
    depth: Tensor  # [h, w], chessboard distance to the nearest known pixel
    queries: Tensor  # bool [h, w], patches that touch the hole
    index: Tensor  # int64 [h, w], match of each query; −1 for none
    distance: Tensor  # [h, w], mean squared difference between a query's patch and its match

    @property
    def key_width(self) -> int:
        """Columns of the region: the row stride of match indices."""
        return self.keys.shape[2]

    def key_index(self, y: Tensor, x: Tensor) -> Tensor:
        """Flat indices of positions in the region; −1 where there is no valid key."""
        height, width = self.valid_keys.shape
        in_region = (y >= 0) & (y < height) & (x >= 0) & (x < width)
        index = (y * width + x).where(in_region, 0)
        return index.where(in_region & take(self.valid_keys.flatten(), index), -1)


def start_level(level: Level, region: Region | None = None) -> LevelFill:
    """State without matches, with the hole still unfilled.

    Args:
        level: of the pyramid.
        region: part to search, which contains the whole hole; None is the whole level.
    """
    region = region or Region(0, 0, *level.known.shape)
    known, sources = level.known[region.slices], level.sources[region.slices]
    keys = torch.empty(level.feature_count + 1, *known.shape)  # filled in place: the largest map
    channels, square = level.features(*region.slices, out=keys[:-1]).sub_(0.5), keys[-1]
    torch.square(channels[0], out=square)
    for channel in channels[1:]:
        square += channel.square()  # all at once would take as much memory as the channels
    touching = patches_touching(~known)
    atlas = pack_windows(touching, PATCH_RADIUS)
    shape = atlas.inside.shape
    return LevelFill(
        region=region,
        keys=keys,
        valid_keys=valid_keys(touching if level.sources is level.known else patches_touching(~sources)),
        atlas=atlas,
        channels=atlas.gather(keys)[:-1],
        hole=atlas.gather(~known) & atlas.inside,
        depth=atlas.gather(hole_depth(~known)),
        queries=atlas.gather(touching) & atlas.inside,
        index=torch.full(shape, -1),
        distance=torch.zeros(shape),
    )
