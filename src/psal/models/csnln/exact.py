"""Exact cross-scale attention: all pairs of pixels and keys, computed in tiles."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from psal.baselines.patches import map_of, recomputed
from psal.models.csnln.cross_scale import (
    MIN_KEY_NORM,
    OVERLAP,
    PATCH_SIZE,
    SOFTMAX_SCALE,
    CrossScaleLayer,
    Projections,
    Rows,
    patch_norm,
)

CHUNK_ELEMENTS = 2**23  # scores held at once: 32 MB in float32
MIN_TILE = 4  # pixels per side; each tile also computes a border


class CrossScaleAttention(CrossScaleLayer):
    """Cross-scale attention to all keys (Mei et al. 2020).

    Time grows with the square of the number of pixels. The scores of a tile of pixels exist at a time, so memory does
    not, unless gradients are needed for a map that fits into one tile.

    Args:
        channels: channels C of the map; even.
        scale: factor per side, 2 or 3.

    >>> CrossScaleAttention(8, scale=3)(torch.rand(1, 8, 12, 15)).shape
    torch.Size([1, 8, 36, 45])
    """

    def paste(self, projected: Projections) -> Rows:
        return _PastedTiles(projected, self.scale)

    def score_count(self, height: int, width: int) -> int:
        return height * width * (height // self.scale) * (width // self.scale)


class _PastedTiles:
    """Rows from all keys."""

    def __init__(self, projected: Projections, scale: int) -> None:
        query, key, value = projected
        self._height, self._width = query.shape[2:]
        self._query = F.pad(query, (2, 2, 2, 2))  # a patch around each pixel of a patch
        self._key = F.pad(key, (1, 1, 1, 1))
        self._key_norm = patch_norm(key).clamp_min(MIN_KEY_NORM)  # [B, 1, h, w]
        self._value = value
        self._scale = scale

    def rows(self, start: int, stop: int) -> Tensor:
        with torch.autocast(self._value.device.type, enabled=False):
            return self._rows(start, stop)

    def _rows(self, start: int, stop: int) -> Tensor:
        keys = len(self._value) * math.prod(self._value.shape[2:])
        side = max(MIN_TILE, math.isqrt(CHUNK_ELEMENTS // keys))
        if side >= max(stop - start, self._width):
            return F.pixel_shuffle(self._tile(slice(start, stop), slice(0, self._width)), self._scale)
        bands = []
        for top in range(start, stop, side):
            rows = slice(top, min(top + side, stop))
            tiles = []
            for left in range(0, self._width, side):
                columns = slice(left, min(left + side, self._width))
                tiles.append(recomputed(lambda r=rows, c=columns: self._tile(r, c)))
            bands.append(torch.cat(tiles, 3))
        return F.pixel_shuffle(torch.cat(bands, 2), self._scale)

    def _tile(self, rows: slice, columns: slice) -> Tensor:
        """Return the output cells ``(B, C · s², R, T)`` of a rectangle of R × T pixels."""
        query = self._query[:, :, rows.start : rows.stop + 4, columns.start : columns.stop + 4]
        pairs = query.flatten(2).mT @ self._key.flatten(2)
        pairs = pairs.reshape(len(pairs), *query.shape[2:], *self._key.shape[2:])  # [B, R + 4, T + 4, h + 2, w + 2]
        # Sums along diagonals: the product of two patches is the sum of the products of their pixels.
        scores = _sum_patches(_sum_patches(pairs, 1, 3), 2, 4)  # [B, R + 2, T + 2, h, w]
        scores = scores * (SOFTMAX_SCALE / self._key_norm[:, :, None])
        weights = torch.softmax(scores.flatten(3), 3).view_as(scores)
        weights = weights * self._is_pixel(rows, columns)[:, :, None, None]
        # Likewise, a cell's weight is the sum over all patches that cover both.
        weights = _sum_covering(_sum_covering(weights, 1, 3), 2, 4)  # [B, R, T, h + 2, w + 2]
        cells = weights.flatten(3).flatten(1, 2) @ self._value.flatten(2).mT  # [B, R · T, C · s²]
        return map_of(cells, weights.shape[1:3]) / OVERLAP

    def _is_pixel(self, rows: slice, columns: slice) -> Tensor:
        """Return 1 for the pixels of a rectangle with a border of one pixel, 0 beyond the map: ``(R + 2, T + 2)``."""
        down = torch.arange(rows.start - 1, rows.stop + 1, device=self._value.device)[:, None]
        right = torch.arange(columns.start - 1, columns.stop + 1, device=self._value.device)
        inside = (down >= 0) & (down < self._height) & (right >= 0) & (right < self._width)
        return inside.to(self._value.dtype)


def _sum_patches(pairs: Tensor, axis: int, key_axis: int) -> Tensor:
    """Sum pairs of pixels and keys over the offsets of a patch along one axis; both axes lose a pixel at each end."""
    count, key_count = pairs.shape[axis] - 2, pairs.shape[key_axis] - 2
    shifted = [pairs.narrow(axis, d, count).narrow(key_axis, d, key_count) for d in range(PATCH_SIZE)]
    return shifted[0] + shifted[1] + shifted[2]


def _sum_covering(weights: Tensor, axis: int, key_axis: int) -> Tensor:
    """Sum weights over the patches that cover a cell along one axis; the keys gain a cell at each end."""
    count = weights.shape[axis] - 2
    behind = 2 * (weights.ndim - 1 - key_axis)  # entries of F.pad for the axes behind the keys'
    shifted = [F.pad(weights.narrow(axis, 2 - d, count), (*[0] * behind, d, 2 - d)) for d in range(PATCH_SIZE)]
    return shifted[0] + shifted[1] + shifted[2]
