"""Local functions of a map, run on bands of its rows: a large picture then needs the memory of one band."""

from collections.abc import Callable

import torch
from torch import Tensor

# Rows of the map that the convolutions of one cell see above and below a row: at most 10, for scale 2.
BORDER = 10


def run_in_bands(local: Callable[[int, int], tuple[Tensor, ...]], height: int, rows: int) -> tuple[Tensor, ...]:
    """Run a function on bands of rows and join the results, which are those on all rows up to rounding.

    Args:
        local: called with the first row and the end of a band; returns maps ``(B, C, n · rows, W)`` of the band. A row
            of the results depends on the rows within BORDER of it.
        height: number of rows.
        rows: number of rows per band, to which a border on both sides is added.

    Returns:
        The maps of all rows.
    """
    if rows >= height:
        return local(0, height)
    joined: list[Tensor] = []
    for start in range(0, height, rows):
        stop = min(start + rows, height)
        low, high = max(start - BORDER, 0), min(stop + BORDER, height)
        for position, band in enumerate(local(low, high)):
            factor = band.shape[2] // (high - low)
            if position == len(joined):
                joined.append(band.new_empty(*band.shape[:2], factor * height, band.shape[3]))
            inner = band[:, :, factor * (start - low) : factor * (stop - low)]
            joined[position][:, :, factor * start : factor * stop] = inner
    return tuple(joined)


def rows_per_band(width: int, pixels: int) -> int:
    """Number of rows with about ``pixels`` pixels, but not so few that most of the work is border."""
    return max(3 * BORDER, pixels // width) if not torch.is_grad_enabled() else 2**31
