"""Sums and means with the same bits on any number of threads.

torch divides the sum of a large CPU tensor among its threads, and the order of the additions changes the last bits.
NumPy adds in one order, pairwise, and is fast enough.
"""

import torch
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
