"""File formats: which are read and written, what each can hold, and the settings each is written with."""

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

JPEG_QUALITY = 95  # without chroma subsampling, as AVIF and HEIC; all other formats are lossless
AVIF_QUALITY = 90
HEIC_QUALITY = 95
PNG_COMPRESSION = 4  # 0 (none) to 9 (smallest)

READ_FORMATS = ("PNG", "JPEG", "TIFF", "WEBP", "AVIF", "JPEG2000", "BMP", "GIF")  # by Pillow itself
HEIC_NEEDS = "HEIC needs pillow-heif: pip install 'psal[heic]'"
READABLE = "PNG, JPEG, TIFF, WebP, AVIF, HEIC, JPEG 2000, BMP or GIF"
FORMAT_BY_SUFFIX = {
    ".png": "PNG",
    ".jpg": "JPEG",
    ".jpeg": "JPEG",
    ".tif": "TIFF",
    ".tiff": "TIFF",
    ".webp": "WEBP",
    ".avif": "AVIF",
    ".heic": "HEIF",
    ".heif": "HEIF",
    ".jp2": "JPEG2000",
    ".bmp": "BMP",
}
READ_SUFFIXES = (*FORMAT_BY_SUFFIX, ".j2k", ".gif")
FORMATS_WITH_16_BITS = ("PNG", "TIFF", "JPEG2000")
FORMATS_WITH_ALPHA = ("PNG", "TIFF", "WEBP", "AVIF", "HEIF", "JPEG2000")


def output_format(path: str | os.PathLike[str]) -> str:
    """Name of the format that a file with this suffix is written in.

    Raises:
        ValueError: if no format that can be written has this suffix.

    >>> output_format("photo.jpeg")
    'JPEG'
    """
    found = FORMAT_BY_SUFFIX.get(Path(path).suffix.lower())
    if found is None:
        raise ValueError(f"{path} cannot be written: let its name end in {', '.join(FORMAT_BY_SUFFIX)}")
    return found


def check_can_hold(path: str | os.PathLike[str], pixels: NDArray[Any]) -> None:
    """Check that the format named by the suffix has the channels of these pixels.

    Raises:
        ValueError: if the pixels have alpha and the format has none, or the format cannot be written.
    """
    kind = output_format(path)
    if kind == "HEIF" and find_spec("pillow_heif") is None:
        raise ValueError(f"{path} cannot be written: {HEIC_NEEDS}")
    if pixels.ndim == 3 and pixels.shape[2] in (2, 4) and kind not in FORMATS_WITH_ALPHA:
        raise ValueError(f"{path} cannot be written: {kind} has no alpha: let its name end in .png")


def loses_depth(path: str | os.PathLike[str], pixels: NDArray[Any]) -> bool:
    """Whether the format named by the suffix reduces these pixels from 16 to 8 bits per channel."""
    return pixels.dtype == np.uint16 and output_format(path) not in FORMATS_WITH_16_BITS


def to_uint8(pixels: NDArray[Any]) -> NDArray[np.uint8]:
    """Reduce uint16 pixels to 8 bits, rounding to the nearest level; uint8 pixels are returned as they are.

    >>> to_uint8(np.array([0, 128, 129, 65535], np.uint16))
    array([  0,   0,   1, 255], dtype=uint8)
    """
    if pixels.dtype == np.uint8:
        return pixels
    return ((pixels + np.uint32(128)) // 257).astype(np.uint8)
