"""AVIF with 10 or 12 bits per channel, which Pillow reduces to 8."""

from typing import Any

import imagecodecs
import numpy as np
from numpy.typing import NDArray

from psal.io.depth import to_uint16

CONFIGURATION = b"av1C"  # box with the settings of the codec
HIGH_DEPTH, TWELVE_BITS = 0x40, 0x20  # of the third byte in it


def bits_per_channel(content: bytes) -> int:
    """Bits per channel of an AVIF file: 8, 10 or 12."""
    start = content.find(CONFIGURATION)
    if start < 0 or len(content) < start + 7:
        return 8
    flags = content[start + 6]
    if not flags & HIGH_DEPTH:
        return 8
    return 12 if flags & TWELVE_BITS else 10


def decode_deep_avif(content: bytes) -> NDArray[Any]:
    """Decode a file with 10 or 12 bits per channel to uint16 ``(H, W)`` or ``(H, W, C)``, scaled to 16 bits."""
    return to_uint16(np.asarray(imagecodecs.avif_decode(content)), bits_per_channel(content))
