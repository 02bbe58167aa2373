"""Change the number of bits per channel."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def to_uint16(pixels: NDArray[Any], bits: int) -> NDArray[np.uint16]:
    """Scale values of ``bits`` bits to the full range of 16 bits.

    >>> to_uint16(np.array([0, 512, 1023], np.uint16), 10)
    array([    0, 32800, 65535], dtype=uint16)
    """
    if bits == 16:
        return pixels.astype(np.uint16, copy=False)
    highest = 2**bits - 1
    scaled: NDArray[np.uint16] = ((pixels.astype(np.uint32) * 65535 + highest // 2) // highest).astype(np.uint16)
    return scaled
