"""HEIC and HEIF, through the plug-in pillow-heif, which need not be installed."""

import io
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from psal.io.formats import HEIC_NEEDS

BRANDS = (b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1")


def is_heif(content: bytes) -> bool:
    """Whether a file is HEIC or HEIF, and not AVIF, which is built alike."""
    return content[4:8] == b"ftyp" and content[8:12] in BRANDS and b"avif" not in content[8:64]


def register() -> None:
    """Let Pillow open and save HEIF.

    Raises:
        ValueError: if the plug-in is not installed.
    """
    if "HEIF" in Image.OPEN:
        return
    try:
        import pillow_heif
    except ModuleNotFoundError:
        raise ValueError(HEIC_NEEDS) from None

    pillow_heif.register_heif_opener(thumbnails=False)


def decode_deep_heif(content: bytes) -> NDArray[Any]:
    """Decode a file with 10 or 12 bits per channel to uint16 ``(H, W)`` or ``(H, W, C)``."""
    import pillow_heif

    return np.asarray(pillow_heif.open_heif(io.BytesIO(content), convert_hdr_to_8bit=False))
