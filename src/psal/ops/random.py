"""Counter-based random numbers: the twin of csrc/kernels/random-inl.h.

A number depends on the seed, a stream and a counter alone, so every device and thread count draws the same.
"""

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
