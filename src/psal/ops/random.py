"""Counter-based random numbers: the twin of csrc/random.h.

A number depends on the seed, a stream and a counter alone, so every device and thread count draws the same.
"""

import torch
from torch import Tensor

_MASK = 0xFFFFFFFF


def random_integers(seed: Tensor, stream: int, counter: Tensor, count: Tensor) -> Tensor:
    """Uniform integers below ``count``, one per counter.

    Args:
        seed: 0-d int64.
        stream: number of the stream; streams are independent.
        counter: int64, any shape; its low 32 bits count.
        count: int64, broadcastable to ``counter``, below 2³¹.
    """
    low, high = seed & _MASK, (seed >> 32) & _MASK
    first = _mix((_mix((_mix(low) + high) & _MASK) + stream) & _MASK)
    second = _mix((first + 0x9E3779B9) & _MASK)
    bits = _mix((_mix((counter + first) & _MASK) + second) & _MASK)
    return (bits * count) >> 32


def _mix(x: Tensor) -> Tensor:
    """A bijection of 32-bit numbers that looks random (lowbias32 of the hash prospector)."""
    x = x ^ (x >> 16)
    x = (x * 0x7FEB352D) & _MASK
    x = x ^ (x >> 15)
    x = (x * 0x846CA68B) & _MASK
    return x ^ (x >> 16)


def draw_seed(seed: int | None) -> Tensor:
    """The seed as the ops take it, on the CPU always; None draws it from torch's generator."""
    if seed is None:
        return torch.randint(0, 2**62, (), dtype=torch.int64, device="cpu")
    return torch.tensor(seed, dtype=torch.int64, device="cpu")


def add_to_seed(seed: int, number: int) -> int:
    """Another seed for each number, of all that :func:`draw_seed` takes: the largest is followed by the smallest."""
    return (seed + number + 2**63) % 2**64 - 2**63
