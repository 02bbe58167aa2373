"""Encode pixels and metadata as a file."""

import io
import struct
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from psal.io import heif
from psal.io.formats import (
    AVIF_QUALITY,
    FORMATS_WITH_16_BITS,
    HEIC_QUALITY,
    JPEG_QUALITY,
    PNG_COMPRESSION,
    to_uint8,
)
from psal.io.jp2 import encode_jp2
from psal.io.metadata import IPTC_RESOURCE, XMP_KEYWORD, Metadata, resized_exif
from psal.io.png import encode_16_bit_png
from psal.io.tiff import encode_tiff

PILLOW_OPTIONS: dict[str, dict[str, Any]] = {
    "PNG": {"compress_level": PNG_COMPRESSION},
    "JPEG": {"quality": JPEG_QUALITY, "subsampling": "4:4:4"},
    "WEBP": {"lossless": True, "exact": True},
    "AVIF": {"quality": AVIF_QUALITY, "subsampling": "4:4:4"},
    "HEIF": {"quality": HEIC_QUALITY, "chroma": 444},
    "BMP": {},
}
MAX_JPEG_SEGMENT = 65_400  # bytes of EXIF, XMP or IPTC; a segment's 64 KB less what stands before them


def encode(pixels: NDArray[Any], metadata: Metadata, kind: str) -> bytes:
    """Encode a file.

    Args:
        pixels: ``(H, W)`` or ``(H, W, C)``, uint8 or uint16; reduced to 8 bits if the format has no more.
        metadata: left out where the format has no place for it, as is a color profile that is for gray and the pixels
            are RGB, or the other way round.
        kind: name of the format, as :func:`psal.io.formats.output_format` returns it.

    Raises:
        OSError, ValueError: if the format cannot hold a picture of this size.
    """
    metadata = _fitting(metadata, pixels)
    pixels = np.ascontiguousarray(pixels if kind in FORMATS_WITH_16_BITS else to_uint8(pixels))
    if kind == "TIFF":
        return encode_tiff(pixels, metadata)
    if kind == "JPEG2000":
        return encode_jp2(pixels, metadata)
    if kind == "HEIF":
        heif.register()
    options = PILLOW_OPTIONS[kind] | _pillow_metadata(metadata, kind)
    if pixels.dtype == np.uint16:
        return encode_16_bit_png(pixels, options)
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, kind, **options)
    return out.getvalue()


def _fitting(metadata: Metadata, pixels: NDArray[Any]) -> Metadata:
    """Metadata for these pixels, which may have another size or other channels than those it came with."""
    if metadata.exif:
        metadata = replace(metadata, exif=resized_exif(metadata.exif, *pixels.shape[:2]))
    color_space = b"RGB " if pixels.ndim == 3 and pixels.shape[2] > 2 else b"GRAY"
    if metadata.icc_profile and metadata.icc_profile[16:20] != color_space:
        metadata = replace(metadata, icc_profile=None)
    return metadata


def _pillow_metadata(metadata: Metadata, kind: str) -> dict[str, Any]:
    """Metadata as arguments of Pillow's ``save``."""
    options = metadata.as_pillow_info()
    if kind == "JPEG":
        for name in ("exif", "xmp"):
            if len(options.get(name, b"")) > MAX_JPEG_SEGMENT:
                del options[name]
        if metadata.iptc and len(metadata.iptc) <= MAX_JPEG_SEGMENT:
            options["extra"] = _jpeg_iptc_segment(metadata.iptc)
    if kind == "PNG" and metadata.xmp:
        options["pnginfo"] = PngInfo()
        options["pnginfo"].add_itxt(XMP_KEYWORD, metadata.xmp.decode(errors="replace"))
    return options


def _jpeg_iptc_segment(iptc: bytes) -> bytes:
    """APP13 segment with IPTC as a Photoshop image resource."""
    resource = b"8BIM" + struct.pack(">HHI", IPTC_RESOURCE, 0, len(iptc)) + iptc + b"\0" * (len(iptc) % 2)
    body = b"Photoshop 3.0\0" + resource
    return b"\xff\xed" + struct.pack(">H", len(body) + 2) + body
