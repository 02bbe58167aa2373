"""Counter-based random numbers: the twin of csrc/kernels/random-inl.h.

A number depends on the seed, a stream and a counter alone, so every device and thread count draws the same ones.
"""

from torch import Tensor

_MASK = 0xFFFFFFFF


def random_integers(seed: Tensor, stream: int, counter: Tensor, count: Tensor) -> Tensor:
    """Draw a uniform integer below ``count`` for each counter.

    Args:
        seed: 0-d int64.
        stream: which of 2³² independent sequences to draw from.
        counter: int64, any shape; only its low 32 bits are used.
        count: int64, broadcastable to ``counter``, below 2³¹.

    Returns:
        int64, in the counter's shape.
    """
    low, high = seed & _MASK, (seed >> 32) & _MASK
    first = _mix((_mix((_mix(low) + high) & _MASK) + stream) & _MASK)
    second = _mix((first + 0x9E3779B9) & _MASK)
    bits = _mix((_mix((counter + first) & _MASK) + second) & _MASK)
    return (bits * count) >> 32


def _mix(x: Tensor) -> Tensor:
    """Hash 32-bit integers by a bijection: lowbias32 of Chris Wellons' hash-prospector."""
    x = x ^ (x >> 16)
    x = (x * 0x7FEB352D) & _MASK
    x = x ^ (x >> 15)
    x = (x * 0x846CA68B) & _MASK
    return x ^ (x >> 16)
