"""Sums and means with the same bits on any number of threads.

torch divides the sum of a large CPU tensor among its threads, and the order of the additions changes the last bits.
NumPy adds in one order, pairwise, and is fast enough.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

STRIP_ROWS = 256  # of a map that are summed at a time, which bounds the memory


def total(x: Tensor) -> Tensor:
    """Sum of all elements, 0-d.

    >>> total(torch.ones(3, 4))
    tensor(12.)
    """
    return torch.as_tensor(x.numpy().sum()) if x.device.type == "cpu" else x.sum()


def mean(x: Tensor) -> float:
    """Mean of all elements, computed on the CPU wherever they are; 0 if there are none.

    >>> mean(torch.tensor([1.0, 2.0]))
    1.5
    """
    return total(x.cpu()).item() / max(x.numel(), 1)


def window_sum(x: Tensor, side: int, padding: str = "constant") -> Tensor:
    """Sum over the square window around each pixel, by adding shifted maps.

    Args:
        x: ``[C, H, W]``.
        side: of the window, odd and at least 3.
        padding: of the border: "constant" for zeros, or "replicate".

    Returns:
        ``[C, H, W]``

    >>> window_sum(torch.ones(1, 2, 4), 3)
    tensor([[[4., 6., 6., 4.],
             [4., 6., 6., 4.]]])
    """
    radius, height = side // 2, x.shape[1]
    out = torch.empty_like(x)
    for top in range(0, height, STRIP_ROWS):
        bottom = min(height, top + STRIP_ROWS)
        first, last = max(0, top - radius), min(height, bottom + radius)
        border = radius, radius, first - top + radius, bottom + radius - last
        part = F.pad(x[None, :, first:last], border, mode=padding)[0]
        for axis in (1, 2):
            size = part.shape[axis] - 2 * radius
            shifted = [part.narrow(axis, shift, size) for shift in range(side)]
            part = shifted[0] + shifted[1]
            for values in shifted[2:]:
                part += values
        out[:, top:bottom] = part
    return out
