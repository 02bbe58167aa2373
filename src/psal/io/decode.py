"""Decode picture files: pixels and metadata.

Pillow decodes 8 bits per channel. It has no 16-bit color, so 16-bit PNG goes through imagecodecs (libpng) and 16-bit
TIFF through tifffile; AVIF, HEIC and JPEG 2000 with more than 8 bits have their own decoders, too.
"""

import contextlib
import io
import logging
import threading
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from psal.io import avif, heif, jp2, png, tiff
from psal.io.cmyk import SRGB, cmyk_to_srgb
from psal.io.formats import READ_FORMATS, READABLE
from psal.io.metadata import Metadata, orientation, read_metadata

CONVERTED_MODES = {"1": "L", "PA": "RGBA", "RGBX": "RGB", "RGBa": "RGBA", "La": "LA"}
TRANSPARENT_MODES = {"L": "LA", "1": "LA", "RGB": "RGBA", "P": "RGBA"}
WIDE_MODES = {"F": "float32", "I": "int32"}
OTHER_DEPTH = "only 8 and 16 bits per channel can be used, so convert it to one of these"
_pillow_limit = threading.Lock()
logging.getLogger("PIL").addHandler(logging.NullHandler())  # our error messages say what is wrong


class _UnusableError(ValueError):
    """An intact picture of a kind that is not supported; its message is written for people."""


def decode(content: bytes, name: str, max_pixels: int) -> tuple[NDArray[Any], Metadata, str]:
    """Decode a picture file.

    Args:
        content: bytes of the file.
        name: what error messages call it.
        max_pixels: files with more pixels are refused before they are decoded.

    Returns:
        Upright pixels ``(H, W)`` or ``(H, W, C)``, uint8 or uint16; metadata; name of the format.

    Raises:
        ValueError: if the file is damaged, or not a picture that can be used.
    """
    try:
        with _without_pillow_limit(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow's warnings about broken tags
            image = _open(content, name)
            return _decode(image, content, name, max_pixels)
    except UnidentifiedImageError:
        if dtype := tiff.unsupported_dtype(content):
            raise ValueError(f"{name} has {dtype} pixels: {OTHER_DEPTH}") from None
        problem = "is empty" if not content else "is damaged, or not a picture"
        raise ValueError(f"{name} {problem}: give a {READABLE} file") from None
    except _UnusableError as error:
        raise ValueError(str(error)) from None
    except (OSError, TypeError, ValueError, SyntaxError, EOFError, IndexError, KeyError, RuntimeError) as error:
        # Decoders raise any of these on truncated files.
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise ValueError(f"{name} is damaged or cut off: get the file again ({reason})") from error


def _open(content: bytes, name: str) -> Image.Image:
    """The file as Pillow opens it, not decoded yet, with all metadata in its ``info``."""
    if not heif.is_heif(content):
        image = Image.open(io.BytesIO(content), formats=READ_FORMATS)
        if image.format == "JPEG2000":
            image.info.update(jp2.read_info(content))
        return image
    try:
        heif.register()
    except ValueError as error:
        raise _UnusableError(f"{name} cannot be read: {error}") from None
    return Image.open(io.BytesIO(content), formats=["HEIF"])


def pillow_pixels(image: Image.Image, name: str) -> NDArray[Any]:
    """Pixels of a Pillow image ``(H, W)`` or ``(H, W, C)``, uint8 or uint16, not turned upright.

    Raises:
        ValueError: if it has several frames, or is neither gray nor RGB nor a palette.
    """
    _check_frames(image, name)
    if image.has_transparency_data and image.mode in TRANSPARENT_MODES:
        image = image.convert(TRANSPARENT_MODES[image.mode])
    elif image.mode == "P":
        image = image.convert("RGB")
    elif image.mode in CONVERTED_MODES:
        image = image.convert(CONVERTED_MODES[image.mode])
    if image.mode in WIDE_MODES:
        raise _UnusableError(f"{name} has {WIDE_MODES[image.mode]} pixels: {OTHER_DEPTH}")
    if image.mode not in ("L", "LA", "RGB", "RGBA") and not image.mode.startswith("I;16"):
        raise _UnusableError(f"{name} is {image.mode}, which cannot be used: convert it to RGB")
    return np.asarray(image)


def _decode(image: Image.Image, content: bytes, name: str, max_pixels: int) -> tuple[NDArray[Any], Metadata, str]:
    if image.width * image.height > max_pixels:
        raise _UnusableError(
            f"{name} has {image.width * image.height / 1e6:.0f} megapixels, but at most "
            f"{max_pixels / 1e6:.0f} can be used: make it smaller"
        )
    _check_frames(image, name)
    pixels = _upright(_decode_pixels(image, content, name), orientation(image))
    return pixels, read_metadata(image), "JPEG" if image.format == "MPO" else str(image.format)


def _decode_pixels(image: Image.Image, content: bytes, name: str) -> NDArray[Any]:
    if image.format == "PNG" and png.has_16_bits(content):
        return png.decode_16_bit_png(content)
    if image.format == "TIFF" and tiff.bits_per_channel(image) == 16:
        try:
            return tiff.decode_16_bit_tiff(content)
        except tiff.UnknownLayoutError as error:
            raise _UnusableError(f"{name} {error}") from error
    if image.format == "AVIF" and avif.bits_per_channel(content) > 8:
        return avif.decode_deep_avif(content)
    if image.format == "JPEG2000" and jp2.bits_per_channel(content) > 8:
        return jp2.decode_deep_jp2(content)
    if image.format == "HEIF" and image.info.get("bit_depth", 8) > 8:
        return heif.decode_deep_heif(content)
    if image.mode == "CMYK":
        try:
            pixels = cmyk_to_srgb(image)
        except ValueError as error:
            raise _UnusableError(f"{name} {error}") from error
        image.info["icc_profile"] = SRGB  # the metadata is read later
        return pixels
    return pillow_pixels(image, name)


def _check_frames(image: Image.Image, name: str) -> None:
    frames = getattr(image, "n_frames", 1)
    if frames > 1 and image.format != "MPO":  # MPO, from cameras: the photo is followed by previews of it
        raise _UnusableError(f"{name} has {frames} frames: save the one you want as a file of its own")


def _upright(pixels: NDArray[Any], orientation: int) -> NDArray[Any]:
    """Rotate and mirror pixels by EXIF's orientation, 1 to 8; other values are ignored."""
    if orientation in (5, 6, 7, 8):
        pixels = pixels.swapaxes(0, 1)
    if orientation in (3, 4, 7, 8):
        pixels = pixels[::-1]
    if orientation in (2, 3, 6, 7):
        pixels = pixels[:, ::-1]
    return np.ascontiguousarray(pixels)


@contextlib.contextmanager
def _without_pillow_limit() -> Iterator[None]:
    """Lift Pillow's limit on pixels, a global of the process: ours takes its place."""
    with _pillow_limit:
        before = Image.MAX_IMAGE_PIXELS
        Image.MAX_IMAGE_PIXELS = None
        try:
            yield
        finally:
            Image.MAX_IMAGE_PIXELS = before
