"""The recurrent cell: in-scale attention, cross-scale attention and convolutions, fused by projections.

Names follow "Image Super-Resolution with Cross-Scale Non-Local Attention and Exhaustive Self-Exemplars Mining" (Mei et
al. 2020) where it has names. A map of the picture's size is called small here, an enlarged one large.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, cast

from torch import Tensor, nn

from psal.baselines import FullAttention, LocalAttention
from psal.layers import AttentionLayer
from psal.models.csnln.bands import rows_per_band, run_in_bands
from psal.models.csnln.cross_scale import CrossScaleLayer, Rows, pointwise

# By factor: kernel size and padding of convolutions that shrink by it (their stride), and transposed ones that enlarge.
KERNELS = {2: (6, 2), 3: (9, 3), 4: (8, 2)}
STEPS = {2: ((2, 2),), 3: ((3, 3),), 4: ((2, 2), (2, 4))}  # by scale: factor of each step, and of all steps up to it


def convolution(channels: int, out_channels: int) -> nn.Sequential:
    """A 3 × 3 convolution and a PReLU."""
    return nn.Sequential(nn.Conv2d(channels, out_channels, 3, padding=1), nn.PReLU())


def shrinking(channels: int, factor: int) -> nn.Sequential:
    """A strided convolution and a PReLU."""
    size, padding = KERNELS[factor]
    return nn.Sequential(nn.Conv2d(channels, channels, size, factor, padding), nn.PReLU())


def enlarging(channels: int, factor: int) -> nn.Sequential:
    """A transposed convolution and a PReLU."""
    size, padding = KERNELS[factor]
    return nn.Sequential(nn.ConvTranspose2d(channels, channels, size, factor, padding), nn.PReLU())


class InScaleAttention(nn.Module):
    """Attention of a map to itself, pixel by pixel, compared by dot product.

    Args:
        channels: channels of the map; even.
        attention: a layer ``(query, key, value) -> output`` that compares single pixels by dot product.
    """

    def __init__(self, channels: int, attention: AttentionLayer) -> None:
        super().__init__()
        self.query = pointwise(channels, channels // 2)
        self.key = pointwise(channels, channels // 2)
        self.value = pointwise(channels, channels)
        self.attention = attention

    def forward(self, x: Tensor) -> Tensor:
        """Attend in a map ``(B, C, H, W)``; the result has its shape."""
        attended: Tensor = self.attention(self.query(x), self.key(x), self.value(x))
        return attended

    def attend(self, x: Tensor) -> Rows:
        """Attend in a whole map, or prepare to do so by rows where that gives the same."""
        if isinstance(self.attention, LocalAttention):
            return _LocalRows(self, x, self.attention.window)
        return _MapRows(self(x))

    def score_count(self, height: int, width: int) -> int:
        """Number of scores of a map of this size if all pairs are compared; 0 if the number of keys is fixed."""
        return (height * width) ** 2 if isinstance(self.attention, FullAttention) else 0


class _MapRows(NamedTuple):
    """Rows of a map that exists."""

    map: Tensor

    def rows(self, start: int, stop: int) -> Tensor:
        return self.map[:, :, start:stop]


class _LocalRows(NamedTuple):
    """Rows of local attention: those that a window reaches are enough, so the whole map never needs to exist."""

    layer: InScaleAttention
    map: Tensor
    window: int

    def rows(self, start: int, stop: int) -> Tensor:
        low, high = max(start - self.window, 0), min(stop + self.window, self.map.shape[2])
        attended: Tensor = self.layer(self.map[:, :, low:high])
        return attended[:, :, start - low : stop - low]


class ResidualBlock(nn.Module):
    """Two 3 × 3 convolutions, a PReLU between them, added to the input."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        first, activation = convolution(channels, channels)
        self.body = nn.Sequential(first, activation, nn.Conv2d(channels, channels, 3, padding=1))

    def forward(self, x: Tensor) -> Tensor:
        refined: Tensor = self.body(x) + x
        return refined


class Attended(NamedTuple):
    """Results of the two attention branches on a map ``(B, C, H, W)``.

    Attributes:
        in_scale: rows ``(B, C, n, W)``.
        cross_scale: enlarged rows; None if the branch is left out.
    """

    in_scale: Rows
    cross_scale: Rows | None


class MutualProjection(nn.Module):
    """Enlarge a map by both attention branches, and refine their difference.

    Args:
        channels: channels of the map.
        cross_scale: the cross-scale layer.
        in_scale: the in-scale layer.
        left_out: leave the cross-scale branch out, as if it found what the in-scale branch found. Its weights remain.
    """

    def __init__(
        self, channels: int, cross_scale: CrossScaleLayer, in_scale: InScaleAttention, left_out: bool = False
    ) -> None:
        super().__init__()
        self.cross_scale = cross_scale.requires_grad_(not left_out)  # training on several processes wants all gradients
        self.in_scale = in_scale
        self.left_out = left_out
        self.upsample = enlarging(channels, cross_scale.scale)
        self.encoder = ResidualBlock(channels)

    def attend(self, x: Tensor) -> Attended:
        """Run the attention of both branches on a whole map."""
        return Attended(self.in_scale.attend(x), None if self.left_out else self.cross_scale.attend(x))

    def fuse(self, attended: Attended, start: int, stop: int) -> Tensor:
        """Return the enlarged rows of some rows of the map; near the ends of a band, convolutions miss a border."""
        coarse: Tensor = self.upsample(attended.in_scale.rows(start, stop))
        if attended.cross_scale is None:
            error = coarse.new_zeros(coarse.shape)
        else:
            error = attended.cross_scale.rows(start, stop).to(coarse.dtype) - coarse
        refined: Tensor = coarse + self.encoder(error)
        return refined


class Step(nn.Module):
    """Enlarge a map, compare its shrunk self with the small map, and correct it by the enlarged error.

    Args:
        projection: enlarges by its factor.
        channels: channels of the maps.
        factor: size of the enlarged map over that of the small one, which one of several steps shares.
    """

    def __init__(self, projection: MutualProjection, channels: int, factor: int) -> None:
        super().__init__()
        self.projection = projection
        self.shrink = shrinking(channels, factor)
        self.enlarge_error = enlarging(channels, factor)

    def forward(self, small: Tensor, attended: Attended, start: int, stop: int) -> Tensor:
        """Return large rows.

        Args:
            small: rows ``(B, C, n, W)`` of the small map.
            attended: results of ``projection.attend`` on a map that is as large as the small one, or larger.
            start, stop: the same rows in that map.
        """
        large = self.projection.fuse(attended, start, stop)
        corrected: Tensor = large + self.enlarge_error(small - self.shrink(large))
        return corrected


class Cell(nn.Module):
    """One recurrence: enlarge a map, and turn the enlarged map into the next small one.

    Args:
        channels: channels of the maps.
        scale: 2, 3 or 4; 4 takes two steps of 2.
        projections: one for each step.
    """

    def __init__(self, channels: int, scale: int, projections: Sequence[MutualProjection]) -> None:
        super().__init__()
        self.scale = scale
        self.steps = nn.ModuleList(
            Step(projection, channels, factor)
            for projection, (_, factor) in zip(projections, STEPS[scale], strict=True)
        )
        self.reduce = shrinking(channels, scale)
        self.post = convolution(channels, channels)

    def forward(self, x: Tensor, tail: Callable[[Tensor], Tensor], band_pixels: int) -> tuple[Tensor, Tensor]:
        """Run the attention on whole maps, and the convolutions on bands of rows if there are no gradients.

        Args:
            x: ``(B, C, H, W)``.
            tail: a local function of large rows, with a 3 × 3 window.
            band_pixels: pixels of a large band.

        Returns:
            The next small map ``(B, C, H, W)``, and ``tail`` of the enlarged one, ``(B, …, s · H, s · W)``.
        """
        rows = rows_per_band(x.shape[3], band_pixels // self.scale**2)
        *first, last = self._steps()
        source, factor = x, 1
        for step in first:
            estimate = _rows_of(step, x, step.projection.attend(source), factor)
            (source,) = run_in_bands(lambda start, stop: (estimate(start, stop),), x.shape[2], rows)  # noqa: B023
            factor = source.shape[2] // x.shape[2]
        estimate = _rows_of(last, x, last.projection.attend(source), factor)

        def finish(start: int, stop: int) -> tuple[Tensor, ...]:
            large = estimate(start, stop)
            return self.post(self.reduce(large)), tail(large)

        small, out = run_in_bands(finish, x.shape[2], rows)
        return small, out

    def min_side(self) -> int:
        """Smallest side of a map that has a key."""
        return self._steps()[0].projection.cross_scale.scale

    def first_cross_scale(self) -> CrossScaleLayer | None:
        """The cross-scale layer of the first step; None if the branch is left out."""
        projection = self._steps()[0].projection
        return None if projection.left_out else projection.cross_scale

    def score_count(self, height: int, width: int) -> int:
        """Number of scores of layers that compare all pairs, on a small map of this size."""
        count, factor = 0, 1
        for step, (_, next_factor) in zip(self._steps(), STEPS[self.scale], strict=True):
            size = factor * height, factor * width
            projection = step.projection
            count += projection.in_scale.score_count(*size)
            count += 0 if projection.left_out else projection.cross_scale.score_count(*size)
            factor = next_factor
        return count

    def _steps(self) -> list[Step]:
        return [cast(Step, step) for step in self.steps]


def _rows_of(step: Step, x: Tensor, attended: Attended, factor: int) -> Callable[[int, int], Tensor]:
    """Return the function that computes large rows from rows of the small map."""

    def rows(start: int, stop: int) -> Tensor:
        large: Tensor = step(x[:, :, start:stop], attended, factor * start, factor * stop)
        return large

    return rows
