"""Pieces of a picture as browsers show them: 8 bits per channel, at full or reduced size."""

import io
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from psal.app.limits import TILE_SIDE
from psal.io.formats import to_uint8

JPEG_QUALITY = 90
MAX_LEVEL = 8
MAX_PROFILE_BYTES = 16_384


def tile_box(level: int, column: int, row: int, size: tuple[int, int]) -> tuple[int, int, int, int] | None:
    """Left, top, right, bottom of a tile in pixels of the picture (H, W); None if it lies outside.

    >>> tile_box(1, 1, 0, (600, 1500))
    (1024, 0, 1500, 600)
    """
    side = TILE_SIDE << level
    left, top = column * side, row * side
    height, width = size
    if not (0 <= left < width and 0 <= top < height):
        return None
    return left, top, min(left + side, width), min(top + side, height)


def picture_tile(
    pixels: NDArray[Any], size: tuple[int, int], level: int, box: tuple[int, int, int, int], profile: bytes | None
) -> tuple[bytes, str]:
    """Encode a tile, without loss at full size.

    Args:
        pixels: ``(H, W)`` or ``(H, W, C)``, uint8 or uint16.
        size: (H, W) that the picture is shown at; the pixels may have another size.
        level: the tile shows one pixel for ``2**level`` by ``2**level``.
        box: from :func:`tile_box`, in pixels of the shown size.
        profile: color profile of the picture.

    Returns:
        The file and its media type.
    """
    image = _reduced(pixels, size, level, box)
    keeps = {"icc_profile": profile} if profile and len(profile) <= MAX_PROFILE_BYTES else {}
    buffer = io.BytesIO()
    if level == 0 or "A" in image.mode:
        image.save(buffer, "PNG", compress_level=1, **keeps)
        return buffer.getvalue(), "image/png"
    image.save(buffer, "JPEG", quality=JPEG_QUALITY, subsampling=0, **keeps)
    return buffer.getvalue(), "image/jpeg"


def mask_tile(mask: NDArray[np.bool_], level: int, box: tuple[int, int, int, int]) -> bytes | None:
    """Encode a tile of a mask as white with alpha; None if nothing is marked in it."""
    left, top, right, bottom = box
    part = mask[top:bottom, left:right]
    if not part.any():
        return None
    alpha = Image.fromarray(part.astype(np.uint8) * 255)
    alpha = alpha.reduce(1 << level) if level else alpha
    image = Image.merge("LA", [Image.new("L", alpha.size, 255), alpha])
    buffer = io.BytesIO()
    image.save(buffer, "PNG", compress_level=1)
    return buffer.getvalue()


def _reduced(pixels: NDArray[Any], size: tuple[int, int], level: int, box: tuple[int, int, int, int]) -> Image.Image:
    left, top, right, bottom = box
    if pixels.shape[:2] == size:
        image = Image.fromarray(to_uint8(np.ascontiguousarray(pixels[top:bottom, left:right])))
        return image.reduce(1 << level) if level else image
    scale_y, scale_x = pixels.shape[0] / size[0], pixels.shape[1] / size[1]
    exact = left * scale_x, top * scale_y, right * scale_x, bottom * scale_y
    first = int(exact[0]), int(exact[1])
    part = pixels[first[1] : int(np.ceil(exact[3])), first[0] : int(np.ceil(exact[2]))]
    image = Image.fromarray(to_uint8(np.ascontiguousarray(part)))
    inner = exact[0] - first[0], exact[1] - first[1], exact[2] - first[0], exact[3] - first[1]
    inner = inner[0], inner[1], min(inner[2], image.width), min(inner[3], image.height)
    shown = -(-(right - left) >> level), -(-(bottom - top) >> level)
    return image.resize(shown, Image.Resampling.BICUBIC, box=inner, reducing_gap=2)
