"""Sums and means with the same bits on any number of threads.

torch divides the sum of a large CPU tensor among its threads, and the order of the additions changes the last bits.
NumPy adds in one order, pairwise, and is fast enough.
"""

import torch
import torch.nn.functional as F
from torch import Tensor


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
    padded = F.pad(x[None], (side // 2,) * 4, mode=padding)[0]
    for axis in (-2, -1):
        size = x.shape[axis]
        total = padded.narrow(axis, 0, size) + padded.narrow(axis, 1, size)
        for shift in range(2, side):
            total += padded.narrow(axis, shift, size)
        padded = total
    return total
