"""Device functions: the random numbers of :mod:`psal.ops.random`, of which this is a twin."""

import triton
import triton.language as tl


@triton.jit
def random_integers(seed, stream, counter, count):
    """Draw an integer below ``count`` per lane.

    ``seed`` is a scalar int64, ``stream`` a scalar int32; ``counter`` is uint32 and ``count`` int32, one per lane.
    """
    low, high = seed.to(tl.uint32), (seed >> 32).to(tl.uint32)
    first = _mix(_mix(_mix(low) + high) + stream.to(tl.uint32))
    second = _mix(first + 0x9E3779B9)
    bits = _mix(_mix(counter + first) + second)
    return tl.umulhi(bits, count.to(tl.uint32)).to(tl.int32)


@triton.jit
def _mix(x):
    x = x ^ (x >> 16)
    x = x * 0x7FEB352D
    x = x ^ (x >> 15)
    x = x * 0x846CA68B
    return x ^ (x >> 16)
