"""16-bit PNG, which Pillow cannot hold in color: imagecodecs reads and writes the pixels, Pillow the metadata."""

import io
from typing import Any

import imagecodecs
import numpy as np
from numpy.typing import NDArray
from PIL import Image

DEPTH_OFFSET = 24  # byte of the file; the header is always the first chunk
HEADER_END = 33


def has_16_bits(content: bytes) -> bool:
    """Whether a PNG has 16 bits per channel."""
    return content[DEPTH_OFFSET] == 16


def decode_16_bit_png(content: bytes) -> NDArray[Any]:
    """Decode a 16-bit PNG to uint16 ``(H, W)`` or ``(H, W, C)``."""
    return np.asarray(imagecodecs.png_decode(content))


def encode_16_bit_png(pixels: NDArray[Any], options: dict[str, Any]) -> bytes:
    """Encode a 16-bit PNG.

    Args:
        pixels: uint16 ``(H, W)`` or ``(H, W, C)``.
        options: metadata and compression, as Pillow's ``save`` takes them.
    """
    donor = io.BytesIO()  # a single pixel with the metadata, whose chunks are taken over
    Image.new("L", (1, 1)).save(donor, "PNG", **options)
    metadata_end = donor.getvalue().rindex(b"IDAT") - 4  # a chunk's name follows its length
    content = bytes(imagecodecs.png_encode(pixels))
    return b"".join([content[:HEADER_END], donor.getvalue()[HEADER_END:metadata_end], content[HEADER_END:]])
