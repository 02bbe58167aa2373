"""Pictures as browsers show them: 8 bit, upright, of a size that a page can bear."""

from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from PIL import Image

from psal.app.limits import MEGA, PREVIEW_SIDE
from psal.io.formats import to_uint8

PREVIEW_JPEG_QUALITY = 92


def shown_size(size: tuple[int, ...], side: int) -> tuple[int, int]:
    """(H, W) no larger than the side, of the same shape.

    >>> shown_size((4000, 6000), 1280), shown_size((20, 30), 1280)
    ((853, 1280), (20, 30))
    """
    height, width = size
    scale = min(1.0, side / max(height, width))
    return max(1, round(height * scale)), max(1, round(width * scale))


def shown_picture(pixels: NDArray[Any], side: int, size: tuple[int, ...] | None = None) -> Image.Image:
    """A picture of at most that side, as if it had the given (H, W) before."""
    image = Image.fromarray(to_uint8(pixels))
    height, width = shown_size(size or pixels.shape[:2], side)
    if (width, height) != image.size:
        image = image.resize((width, height), Image.Resampling.BICUBIC, reducing_gap=2)
    return image


def write_preview(path: Path, pixels: NDArray[Any], size: tuple[int, ...] | None = None) -> Path:
    """Write what to show of a picture; small ones and those with alpha lose nothing.

    Args:
        path: without a suffix.
        pixels: ``(H, W)`` or ``(H, W, C)``, uint8 or uint16.
        size: (H, W) that it is to have before it is made small enough; its own if left out.

    Returns:
        The path with a suffix.
    """
    image = shown_picture(pixels, PREVIEW_SIDE, size)
    if "A" in image.mode or image.width * image.height <= MEGA:
        path = path.with_suffix(".png")
        image.save(path, compress_level=1)
    else:
        path = path.with_suffix(".jpg")
        image.save(path, quality=PREVIEW_JPEG_QUALITY)
    return path
