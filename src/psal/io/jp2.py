"""JPEG 2000: its depth, 16 bits per channel, and metadata, which Pillow neither reads nor writes.

A .jp2 file is a list of boxes: length, type, content. XMP, EXIF and IPTC are in ``uuid`` boxes, the color profile is in
a ``colr`` box inside ``jp2h``.
"""

import struct
from collections.abc import Iterator
from typing import Any

import imagecodecs
import numpy as np
from numpy.typing import NDArray

from psal.io.depth import to_uint16
from psal.io.metadata import IPTC_RESOURCE, Metadata

SIGNATURE = b"\0\0\0\x0cjP  \r\n\x87\n"
CODESTREAM = b"\xff\x4f\xff\x51"  # start of the image, then the marker of its size
DEPTH_OFFSET = 42  # bytes from the start of the codestream to the depth of its first channel
XMP_UUID = bytes.fromhex("be7acfcb97a942e89c71999491e3afac")
EXIF_UUID = b"JpgTiffExif->JP2"
IPTC_UUID = bytes.fromhex("33c7a4d2b81d4723a0baf1a3e097ad38")
EXIF_PREFIX = b"Exif\0\0"
RESTRICTED_ICC, ANY_ICC = 2, 3  # methods of a colr box


def bits_per_channel(content: bytes) -> int:
    """Bits per channel of a JPEG 2000 file.

    Raises:
        ValueError: if there is no codestream.
    """
    start = content.index(CODESTREAM)
    return (content[start + DEPTH_OFFSET] & 0x7F) + 1


def decode_deep_jp2(content: bytes) -> NDArray[Any]:
    """Decode a file with 9 to 16 bits per channel to uint16 ``(H, W)`` or ``(H, W, C)``, scaled to 16 bits."""
    return to_uint16(np.asarray(imagecodecs.jpeg2k_decode(content)), bits_per_channel(content))


def encode_jp2(pixels: NDArray[Any], metadata: Metadata) -> bytes:
    """Encode without loss, 8 or 16 bits per channel, with all metadata but the resolution.

    Args:
        pixels: ``(H, W)`` or ``(H, W, C)``, uint8 or uint16, contiguous.
        metadata: EXIF, XMP, IPTC and color profile are kept.
    """
    content = bytes(imagecodecs.jpeg2k_encode(pixels, level=0, codecformat="jp2", reversible=True))
    extras = (
        (EXIF_UUID, metadata.exif and metadata.exif.removeprefix(EXIF_PREFIX)),
        (XMP_UUID, metadata.xmp),
        (IPTC_UUID, metadata.iptc),
    )
    boxes = []
    for kind, body in _boxes(content):
        if kind == b"jp2h" and metadata.icc_profile:
            body = _with_profile(body, metadata.icc_profile)
        if kind == b"jp2c":  # metadata stands before the image
            boxes += [_box(b"uuid", uuid + value) for uuid, value in extras if value]
        boxes.append(_box(kind, body))
    return b"".join(boxes)


def read_info(content: bytes) -> dict[str, Any]:
    """Metadata as in the ``info`` of a Pillow image; empty for a bare codestream."""
    if not content.startswith(SIGNATURE):
        return {}
    info: dict[str, Any] = {}
    for kind, body in _boxes(content):
        if kind == b"uuid" and body.startswith(XMP_UUID):
            info["xmp"] = body[16:]
        elif kind == b"uuid" and body.startswith(EXIF_UUID):
            info["exif"] = EXIF_PREFIX + body[16:].removeprefix(EXIF_PREFIX)
        elif kind == b"uuid" and body.startswith(IPTC_UUID):
            info["photoshop"] = {IPTC_RESOURCE: body[16:]}
        elif kind == b"jp2h":
            profiles = [
                part[3:] for name, part in _boxes(body) if name == b"colr" and part[0] in (RESTRICTED_ICC, ANY_ICC)
            ]
            info |= {"icc_profile": profiles[0]} if profiles else {}
    return info


def _with_profile(header: bytes, profile: bytes) -> bytes:
    """Boxes of a jp2h box with this color profile in place of the color space."""
    color = bytes([ANY_ICC if profile[16:20] not in (b"RGB ", b"GRAY") else RESTRICTED_ICC, 0, 0]) + profile
    return b"".join(_box(kind, color if kind == b"colr" else body) for kind, body in _boxes(header))


def _boxes(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Type and content of each box."""
    start = 0
    while start + 8 <= len(content):
        length, kind = struct.unpack_from(">I4s", content, start)
        head = 8
        if length == 1:
            (length,), head = struct.unpack_from(">Q", content, start + 8), 16
        end = len(content) if length == 0 else start + length
        if end < start + head:
            raise ValueError("a box of the file is too short")
        yield kind, content[start + head : end]
        start = end


def _box(kind: bytes, body: bytes) -> bytes:
    if len(body) + 8 < 2**32:
        return struct.pack(">I4s", len(body) + 8, kind) + body
    return struct.pack(">I4sQ", 1, kind, len(body) + 16) + body
