"""Cross-scale attention: each patch of a map attends to patches of the same map downscaled.

The layer enlarges a map by a factor s. A 3 × 3 patch of the map is the query, the 3 × 3 patches of the map downscaled
by s are the keys, and each key brings the patch of 3s × 3s pixels that it was downscaled from. The enlarged patches
overlap and are added up.

Pixels are handled in cells of s × s: a cell of the value map lies under each pixel of the downscaled map, and the
output has a cell for each pixel of the map. So output cell m is the sum over the offsets d of a 3 × 3 window, and over
the keys j of pixel m − d, of the weight of j times value cell j + d.
"""

from abc import ABC, abstractmethod
from typing import NamedTuple, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from psal import checks, ops
from psal.errors import UsageError
from psal.functional import aggregate, patch_match
from psal.matches import Matches
from psal.options import SearchOptions
from psal.precision import working_type

PATCH_SIZE = 3  # pixels per side of queries and keys; in the output, cells
SOFTMAX_SCALE = 10.0  # of the scores
MIN_KEY_NORM = 1e-4  # smaller norms of key patches are raised to this
OVERLAP = 6.0  # divides the sum of overlapping patches; nine overlap, but trained weights expect this


class Projections(NamedTuple):
    """What a layer compares and pastes.

    Attributes:
        query: ``(B, C // 2, H, W)``.
        key: ``(B, C // 2, h, w)``, of the downscaled map.
        value: cells ``(B, C · s², h + 2, w + 2)``, with a border of one cell; zeros lie beyond the map.
    """

    query: Tensor
    key: Tensor
    value: Tensor


class Rows(Protocol):
    """A map whose rows are computed when they are asked for, so that the whole never needs to exist."""

    def rows(self, start: int, stop: int) -> Tensor:
        """Return what belongs to some rows of a map; ``(B, C, s · (stop − start), s · W)`` if it is enlarged."""


class CrossScaleLayer(nn.Module, ABC):
    """Base class: the projections, which have the same names and shapes in all layers.

    Args:
        channels: channels C of the map; even.
        scale: factor s per side, 2 or 3.
    """

    def __init__(self, channels: int, scale: int) -> None:
        super().__init__()
        self.scale = scale
        self.query = pointwise(channels, channels // 2)
        self.key = pointwise(channels, channels // 2)
        self.value = pointwise(channels, channels)

    def forward(self, x: Tensor) -> Tensor:
        """Enlarge ``(B, C, H, W)`` to ``(B, C, s · H, s · W)``, in the map's type; H and W are at least s.

        Raises:
            ValueError: if the map is smaller.
        """
        return self.attend(x).rows(0, x.shape[2]).to(x.dtype)

    def attend(self, x: Tensor) -> Rows:
        """Find the keys of each pixel; the enlarged rows are computed later."""
        projected = self.project(x)
        with torch.autocast(x.device.type, enabled=False):
            return self.paste(projected)

    def project(self, x: Tensor) -> Projections:
        """Project a map ``(B, C, H, W)``; the results are float32 or float64."""
        high, wide = x.shape[2:]
        if min(high, wide) < self.scale:
            raise UsageError(
                f"cross-scale attention needs at least {self.scale} × {self.scale} pixels, got {high} × {wide}"
            )
        # Pixel j of the downscaled map lies over cell j; a last row or column that fills no cell has no key of its own.
        small = F.interpolate(x, scale_factor=1 / self.scale, mode="bilinear")  # [B, C, h, w]
        rows, columns = ((side + 2) * self.scale for side in small.shape[2:])
        border = (self.scale, columns - self.scale - wide, self.scale, rows - self.scale - high)
        value = F.pixel_unshuffle(F.pad(self.value(x), border), self.scale)
        working = working_type(x)
        return Projections(self.query(x).to(working), self.key(small).to(working), value.to(working))

    def score_count(self, height: int, width: int) -> int:
        """Number of scores of a map of this size if all pairs are compared; 0 if the number of keys is fixed."""
        return 0

    @abstractmethod
    def paste(self, projected: Projections) -> Rows:
        """Find the keys, without autocast."""


class FewKeysLayer(CrossScaleLayer):
    """Base class of layers that give each query a fixed number of keys: memory is linear in the number of pixels."""

    def paste(self, projected: Projections) -> Rows:
        query, key, value = projected
        found = self.find(query, key)
        wide = key.shape[3]
        size = patch_norm(key).flatten(2)  # [B, 1, h · w]
        shrunk = (size / size.clamp_min(MIN_KEY_NORM)).expand(-1, found.index.shape[1], -1)
        norm = shrunk.gather(2, found.index.flatten(2)).reshape(found.index.shape) * patch_norm(query)
        weight = torch.log_softmax(SOFTMAX_SCALE * found.score * norm, 1)
        bordered = (found.index // wide + 1) * (wide + 2) + found.index % wide + 1  # in the value's grid
        return _PastedMatches(Matches(bordered, weight), value, self.scale)

    @abstractmethod
    def find(self, query: Tensor, key: Tensor) -> Matches:
        """Choose keys for each query, with their cosine similarity."""


class PatchCrossScaleAttention(FewKeysLayer):
    """Cross-scale attention to the best keys, found by :func:`psal.patch_match`.

    The exact layer compares by the dot product with normalized keys. For a given query, that orders keys as the cosine
    does. Trained weights of :class:`CrossScaleAttention` work in this layer unchanged.

    Args:
        channels: channels C of the map; even.
        scale: factor per side, 2 or 3.
        neighbors: number of keys per query; where the map has fewer, all of them.
        seed: of the search; None draws one from torch's generator.

    >>> PatchCrossScaleAttention(8, scale=2)(torch.rand(1, 8, 12, 15)).shape
    torch.Size([1, 8, 24, 30])
    """

    def __init__(self, channels: int, scale: int, neighbors: int = 3, seed: int | None = None) -> None:
        super().__init__(channels, scale)
        self.neighbors = checks.check_count("neighbors", neighbors, 1)
        self.seed = seed

    def find(self, query: Tensor, key: Tensor) -> Matches:
        return _search(query, key, self.neighbors, self.seed)


class RandomCrossScaleAttention(PatchCrossScaleAttention):
    """A control: cross-scale attention to random keys, weighted by their scores. Arguments are the same."""

    def find(self, query: Tensor, key: Tensor) -> Matches:
        return _search(query, key, self.neighbors, self.seed, init="random", iterations=0)


class WindowCrossScaleAttention(FewKeysLayer):
    """A control: cross-scale attention to all keys in a window around the pixel's own place.

    Args:
        channels: channels C of the map; even.
        scale: factor per side, 2 or 3.
        window: side of the window, in pixels of the downscaled map. At the border it is moved inside.
    """

    def __init__(self, channels: int, scale: int, window: int = 7) -> None:
        super().__init__(channels, scale)
        self.window = checks.check_count("window", window, 1)

    def find(self, query: Tensor, key: Tensor) -> Matches:
        rows, columns = (
            self._window(side, key_side, query.device)
            for side, key_side in zip(query.shape[2:], key.shape[2:], strict=True)
        )  # [H, window], [W, window]
        index = rows.mT[:, None, :, None] * key.shape[3] + columns.mT[None, :, None, :]  # [window, window, H, W]
        index = index.flatten(0, 1).expand(query.shape[0], -1, -1, -1).contiguous()
        options = SearchOptions(PATCH_SIZE, index.shape[1], similarity="cosine", padding_mode="zeros")
        return Matches(index, ops.score(query, key, index, options))

    def _window(self, side: int, key_side: int, device: torch.device) -> Tensor:
        """Return the keys ``(side, window)`` along one axis that each query sees."""
        count = min(self.window, key_side)
        center = torch.arange(side, device=device) // self.scale
        return (center - count // 2).clamp(0, key_side - count)[:, None] + torch.arange(count, device=device)


def pointwise(channels: int, out_channels: int) -> nn.Sequential:
    """A 1 × 1 convolution and a PReLU."""
    return nn.Sequential(nn.Conv2d(channels, out_channels, 1), nn.PReLU())


def _search(
    query: Tensor,
    key: Tensor,
    neighbors: int,
    seed: int | None,
    init: str | None = None,
    iterations: int | None = None,
) -> Matches:
    """Search as the exact layer compares: zeros lie beyond the border of both maps."""
    return patch_match(
        query, key, patch_size=PATCH_SIZE, neighbors=min(neighbors, key[0, 0].numel()), similarity="cosine",
        padding_mode="zeros", init=init, iterations=iterations, seed=seed,
    )  # fmt: skip


class _PastedMatches:
    """Rows from matches: in the value's grid, with the logarithms of their weights as scores."""

    def __init__(self, matches: Matches, value: Tensor, scale: int) -> None:
        self._matches = matches
        self._value = value
        self._scale = scale

    def rows(self, start: int, stop: int) -> Tensor:
        index, weight = self._matches
        high, wide = index.shape[2:]
        low, top = max(start - 1, 0), min(stop + 1, high)
        band = Matches(index[:, :, low:top].contiguous(), weight[:, :, low:top])
        mean = aggregate(band, self._value, patch_size=PATCH_SIZE)[:, :, start - low : stop - low]
        # The weights of a pixel add up to 1, so the mean is the sum over the number of pixels in the window.
        down, right = (_window_counts(side, weight) for side in (high, wide))
        return F.pixel_shuffle(mean * (down[start:stop, None] * right / OVERLAP), self._scale)


def _window_counts(side: int, like: Tensor) -> Tensor:
    """Number of pixels in the patch window around each of ``side`` pixels in a row."""
    position = torch.arange(side, device=like.device)
    return (1 + (position > 0).to(like) + (position < side - 1).to(like)).to(like)


def patch_norm(x: Tensor) -> Tensor:
    """Euclidean norm ``(B, 1, H, W)`` of the patches around all pixels; zeros lie beyond the border."""
    squares = F.avg_pool2d(x.square().sum(1, keepdim=True), PATCH_SIZE, 1, PATCH_SIZE // 2) * PATCH_SIZE**2
    return squares.clamp_min(torch.finfo(x.dtype).tiny).sqrt()  # the root of 0 has no derivative
