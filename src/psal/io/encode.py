"""Encode pixels and metadata as a file: 16 bits by imagecodecs and tifffile, 8 bits by Pillow."""

import io
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from psal.io import sixteen_bit
from psal.io.formats import FORMATS_WITH_16_BITS, JPEG_QUALITY, PNG_COMPRESSION, to_uint8
from psal.io.metadata import Metadata, resized_exif

SAVE_OPTIONS: dict[str, dict[str, Any]] = {
    "PNG": {"compress_level": PNG_COMPRESSION},
    "JPEG": {"quality": JPEG_QUALITY, "subsampling": "4:4:4"},
    "TIFF": {"compression": "raw"},  # with any other, Pillow drops the EXIF
    "WEBP": {"lossless": True, "exact": True},
    "BMP": {},
}


def encode(pixels: NDArray[Any], metadata: Metadata, kind: str) -> bytes:
    """Encode a file.

    Args:
        pixels: ``(H, W)`` or ``(H, W, C)``, uint8 or uint16; reduced to 8 bits if the format has no more.
        metadata: a color profile that does not fit the channels (gray or RGB) is left out.
        kind: name of the format, as :func:`psal.io.formats.output_format` returns it.

    Raises:
        OSError, ValueError: if the format cannot hold a picture of this size.
    """
    if metadata.exif:
        metadata = replace(metadata, exif=resized_exif(metadata.exif, *pixels.shape[:2]))
    profile = metadata.icc_profile
    if profile and profile[16:20] != (b"RGB " if pixels.ndim == 3 and pixels.shape[2] > 2 else b"GRAY"):
        metadata = replace(metadata, icc_profile=None)
    pixels = np.ascontiguousarray(pixels if kind in FORMATS_WITH_16_BITS else to_uint8(pixels))
    if pixels.dtype == np.uint16:
        encode_16_bit = sixteen_bit.encode_png if kind == "PNG" else sixteen_bit.encode_tiff
        return encode_16_bit(pixels, metadata)
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, kind, **SAVE_OPTIONS[kind], **metadata.as_pillow_info())
    return out.getvalue()
