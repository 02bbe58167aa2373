"""The super-resolution network with cross-scale attention (Mei et al. 2020)."""

from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from psal import checks
from psal.errors import UsageError
from psal.models.csnln.attentions import build_cross_scale, build_in_scale, is_left_out
from psal.models.csnln.cell import STEPS, Cell, InScaleAttention, MutualProjection, convolution

SCALES = tuple(STEPS)
MEAN_COLOR = (0.4488, 0.4371, 0.4040)  # of the DIV2K photographs
MAX_SCORES = 2**34  # of an exact attention on one map: minutes per recurrence on two cores
BAND_PIXELS = 2**20  # large pixels whose convolutions run at once when there are no gradients


class CSNLN(nn.Module):
    """Enlarge pictures: a head, a cell that is applied several times, and a tail over all recurrences.

    The cell enlarges the features by attention to the map itself and to its downscaled self. All choices of
    ``cross_scale`` and ``in_scale`` have the same weights.

    Args:
        scale: factor per side: 2, 3 or 4.
        width: channels of the feature maps; even. 128 in the published networks.
        depth: number of recurrences. 12 in the published networks.
        cross_scale: "exact", "psalN" (N neighbors), "randomN" (N random keys), "localN" (all keys in a window of
            N × N), or "none" (the branch left out).
        in_scale: "exact", or "localN" (a window of N × N pixels).
        residual: add the result to the picture enlarged bicubically, so that only the difference is learned. The
            published networks add it to a mean color.
        seed: of the searches; None draws one from torch's generator in each call.

    Attributes:
        band_pixels: without gradients, convolutions run on bands of about this many pixels of the result. Attention is
            not affected.

    Raises:
        ValueError, TypeError: if an argument is not as described.

    >>> CSNLN(scale=2, width=8, depth=2)(torch.rand(1, 3, 12, 15)).shape
    torch.Size([1, 3, 24, 30])
    """

    def __init__(
        self,
        scale: int,
        *,
        width: int = 128,
        depth: int = 12,
        cross_scale: str = "psal3",
        in_scale: str = "local15",
        residual: bool = False,
        seed: int | None = None,
    ) -> None:
        super().__init__()
        if scale not in SCALES:
            raise UsageError(f"scale must be one of {', '.join(map(str, SCALES))}, got {scale!r}")
        if checks.check_count("width", width, 2) % 2:
            raise UsageError(f"width must be even, got {width}")
        self.scale = scale
        self.residual = residual
        self.depth = checks.check_count("depth", depth, 1)
        self.head = nn.Sequential(convolution(3, width), convolution(width, width))
        self.cell = Cell(
            width,
            scale,
            [
                MutualProjection(
                    width,
                    build_cross_scale(cross_scale, width, factor, seed),
                    InScaleAttention(width, build_in_scale(in_scale)),
                    left_out=is_left_out(cross_scale),
                )
                for factor, _ in STEPS[scale]
            ],
        )
        self.tail = nn.Conv2d(width * depth, 3, 3, padding=1)
        self.band_pixels = BAND_PIXELS
        self.mean: Tensor
        self.register_buffer("mean", torch.tensor(MEAN_COLOR)[:, None, None], persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """Enlarge RGB ``(B, 3, H, W)`` in 0..1 to ``(B, 3, scale · H, scale · W)``, not clamped.

        Raises:
            UsageError: as :meth:`check_size`.
        """
        checks.check_map("x", x)
        if x.ndim != 4 or x.shape[1] != 3:
            raise ValueError(f"x must be RGB (B, 3, H, W), got shape {tuple(x.shape)}")
        self.check_size(*x.shape[2:])
        small = self.head(x - self.mean)
        size = self.scale * x.shape[2], self.scale * x.shape[3]
        if self.residual:
            exact = x if x.dtype == torch.float64 else x.float()  # torch has no such kernel for half types
            out = F.interpolate(exact, size, mode="bicubic", antialias=True)
        else:
            out = self.mean.expand(len(x), -1, *size)
        for recurrence, weight in enumerate(self.tail.weight.chunk(self.depth, 1)):  # no need to keep all large maps
            bias = self.tail.bias if recurrence == 0 else None
            tail = partial(F.conv2d, weight=weight, bias=bias, padding=1)
            small, part = self.cell(small, tail, self.band_pixels)
            out = out + part
        return out

    def check_size(self, height: int, width: int) -> None:
        """Check that a picture of this size can be enlarged.

        Raises:
            UsageError: if it is smaller than one cell of the attention, or too large for an exact one.
        """
        least = self.cell.min_side()
        if min(height, width) < least:
            raise UsageError(f"the network needs at least {least} × {least} pixels, got {height} × {width}")
        scores = self.cell.score_count(height, width)
        if scores > MAX_SCORES:
            raise UsageError(
                f"exact attention on {height} × {width} pixels compares {scores:.2g} pairs in each recurrence "
                f"({4 * scores / 1e9:,.0f} GB of scores), and the limit is {MAX_SCORES:.2g}: "
                "use psal3 across scales and local15 in scale, or a smaller picture"
            )
