"""Picture files: read and written with all that belongs to them.

Pillow reads and writes 8 bits a channel. 16-bit PNG goes through imagecodecs (libpng) and 16-bit TIFF through
tifffile, since Pillow has no 16-bit colour.
"""

import contextlib
import io
import logging
import os
import struct
import threading
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import ExifTags, Image, UnidentifiedImageError

from psal.io import sixteen_bit
from psal.io.atomic import write_atomically

MOST_PIXELS = 500_000_000
READ_FORMATS = ("PNG", "JPEG", "TIFF", "WEBP", "BMP", "GIF")
WRITE_FORMATS = {
    ".png": "PNG",
    ".jpg": "JPEG",
    ".jpeg": "JPEG",
    ".tif": "TIFF",
    ".tiff": "TIFF",
    ".webp": "WEBP",
    ".bmp": "BMP",
}
READ_SUFFIXES = (*WRITE_FORMATS, ".gif")
SIXTEEN_BIT_FORMATS = ("PNG", "TIFF")
ALPHA_FORMATS = ("PNG", "TIFF", "WEBP")
SAVE_OPTIONS: dict[str, dict[str, Any]] = {
    "PNG": {"compress_level": 4},
    "JPEG": {"quality": 95, "subsampling": "4:4:4"},
    "TIFF": {"compression": "raw"},  # compressed by libtiff, Pillow's TIFFs lose the EXIF
    "WEBP": {"lossless": True, "exact": True},
    "BMP": {},
}
ORIENTATION = 0x0112
# How a TIFF lays out its pixels, and what is kept apart or not at all (profile, XMP, IPTC): no part of the EXIF.
TIFF_STRUCTURE = (
    *(
        254,
        255,
        256,
        257,
        258,
        259,
        262,
        266,
        273,
        277,
        278,
        279,
        282,
        283,
        284,
        296,
        317,
        320,
        322,
        323,
        324,
        325,
        330,
    ),
    *(338, 339, 347, 529, 530, 531, 532, 700, 33723, 34377, 34675),
)
CONVERTED_MODES = {"1": "L", "PA": "RGBA", "RGBX": "RGB", "RGBa": "RGBA", "La": "LA"}
WIDE_MODES = {"F": "float32", "I": "int32"}
OTHER_DEPTH = "only 8 and 16 bits a channel can be used, so convert it to one of these"
TRANSPARENT_MODES = {"L": "LA", "1": "LA", "RGB": "RGBA", "P": "RGBA"}
_pillow_limit = threading.Lock()
logging.getLogger("PIL").addHandler(logging.NullHandler())  # as for warnings: our line says what is wrong


@dataclass(frozen=True)
class PictureFile:
    """What a file held: upright pixels, and what goes along with them.

    Attributes:
        pixels: ``(H, W)`` or ``(H, W, C)``, uint8 or uint16; C is 2 (grey and alpha), 3 or 4.
        exif: with the orientation set to upright and without the thumbnail, which would show the old picture.
        icc_profile: colour profile.
        dpi: resolution.
        format: Pillow's name of it.
    """

    pixels: NDArray[Any]
    exif: bytes | None = None
    icc_profile: bytes | None = None
    dpi: tuple[float, float] | None = None
    format: str | None = None

    def info(self) -> dict[str, Any]:
        """What there is besides the pixels, under Pillow's names."""
        found = {"exif": self.exif, "icc_profile": self.icc_profile, "dpi": self.dpi}
        return {name: value for name, value in found.items() if value is not None}


def read_picture_file(path: str | os.PathLike[str], most_pixels: int = MOST_PIXELS) -> PictureFile:
    """Read a picture.

    Args:
        path: PNG, JPEG, TIFF, WebP, BMP or GIF; grey or RGB, with or without alpha, 8 or 16 bit. A palette becomes
            RGB or RGBA.
        most_pixels: one that has more is refused before it is decoded.

    Raises:
        OSError: if there is no such file or it cannot be read.
        ValueError: if it is not a picture that can be used; the message names the file.
    """
    try:
        content = Path(path).read_bytes()
    except FileNotFoundError:
        raise FileNotFoundError(f"{path}: there is no such file") from None
    except IsADirectoryError:
        raise IsADirectoryError(f"{path} is a folder: give a file") from None
    except OSError as error:
        raise OSError(f"{path} cannot be read: {error.strerror}") from error
    try:
        with _large_pictures(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what Pillow has to say of a broken tag helps nobody
            image = Image.open(io.BytesIO(content), formats=READ_FORMATS)
            return _read(image, content, str(path), most_pixels)
    except UnidentifiedImageError:
        if number_type := sixteen_bit.tiff_number_type(content):
            raise ValueError(f"{path} has {number_type} pixels: {OTHER_DEPTH}") from None
        what = "is empty" if not content else "is damaged, or not a picture"
        raise ValueError(f"{path} {what}: give a PNG, JPEG, TIFF, WebP, BMP or GIF file") from None
    except _UnusableError as error:
        raise ValueError(str(error)) from None
    except (OSError, ValueError, SyntaxError, EOFError, IndexError, KeyError, RuntimeError) as error:
        # Decoders of a file that broke off raise any of these.
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise ValueError(f"{path} is damaged or cut off: get the file again ({reason})") from error


def pillow_pixels(image: Image.Image, name: str) -> NDArray[Any]:
    """A Pillow image's pixels as they stand, ``(H, W)`` or ``(H, W, C)``, uint8 or uint16.

    Raises:
        ValueError: if it has frames, or is neither grey nor RGB nor has a palette.
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


def write_picture_file(path: str | os.PathLike[str], pixels: NDArray[Any], like: PictureFile | None = None) -> None:
    """Write a picture whole or not at all; JPEG at quality 95 without subsampling, all else without loss.

    Args:
        path: its suffix names the format; one that has no 16 bit gets 8.
        pixels: ``(H, W)`` or ``(H, W, C)``, uint8 or uint16.
        like: whose EXIF, colour profile and resolution go along. A colour profile is left out where grey became
            colour, and BMP takes the resolution only.

    Raises:
        ValueError: if the format cannot hold the picture.
        OSError: if the file cannot be written.
    """
    path = Path(path)
    write_atomically(path, _encode(path, pixels, like or PictureFile(pixels)))


def check_writable_format(path: str | os.PathLike[str]) -> str:
    """Pillow's name of the format that the path's suffix stands for.

    Raises:
        ValueError: if pictures are not written in that format.
    """
    found = WRITE_FORMATS.get(Path(path).suffix.lower())
    if found is None:
        raise ValueError(f"{path} cannot be written: let its name end in {', '.join(WRITE_FORMATS)}")
    return found


def check_can_hold(path: str | os.PathLike[str], pixels: NDArray[Any]) -> None:
    """Find out before the work that a format has no alpha.

    Raises:
        ValueError: if the format that the path's suffix stands for cannot hold such pixels.
    """
    kind = check_writable_format(path)
    if pixels.ndim == 3 and pixels.shape[2] in (2, 4) and kind not in ALPHA_FORMATS:
        raise ValueError(f"{path} cannot be written: {kind} has no alpha: let its name end in .png")


def loses_depth(path: str | os.PathLike[str], pixels: NDArray[Any]) -> bool:
    """Whether 16-bit pixels become 8-bit ones in the format that the path's suffix stands for."""
    return pixels.dtype == np.uint16 and check_writable_format(path) not in SIXTEEN_BIT_FORMATS


class _UnusableError(ValueError):
    """A sound picture of a kind that is not taken; its message is fit for people."""


def _read(image: Image.Image, content: bytes, name: str, most_pixels: int) -> PictureFile:
    if image.width * image.height > most_pixels:
        raise _UnusableError(
            f"{name} has {image.width * image.height / 1e6:.0f} megapixels, of which at most "
            f"{most_pixels / 1e6:.0f} can be used: make it smaller"
        )
    _check_frames(image, name)
    try:
        pixels = sixteen_bit.decode(image, content)
    except sixteen_bit.UnknownLayoutError as error:
        raise _UnusableError(f"{name} {error}") from error
    if pixels is None:
        pixels = pillow_pixels(image, name)
    exif = image.getexif()
    orientation = exif.get(ORIENTATION, 1)
    dpi = image.info.get("dpi")
    return PictureFile(
        pixels=_upright(pixels, orientation),
        exif=_upright_exif(exif),
        icc_profile=image.info.get("icc_profile"),
        dpi=(float(dpi[0]), float(dpi[1])) if dpi and dpi[0] > 0 and dpi[1] > 0 else None,
        format="JPEG" if image.format == "MPO" else image.format,
    )


def _check_frames(image: Image.Image, name: str) -> None:
    frames = getattr(image, "n_frames", 1)
    if frames > 1 and image.format != "MPO":  # a camera's MPO: the photo, and then previews of it
        raise _UnusableError(f"{name} has {frames} frames: save the one you want as a picture of its own")


def _upright(pixels: NDArray[Any], orientation: int) -> NDArray[Any]:
    """Turn and mirror pixels as EXIF's orientation 1 to 8 says; any other number says nothing."""
    if orientation in (5, 6, 7, 8):
        pixels = pixels.swapaxes(0, 1)
    if orientation in (3, 4, 7, 8):
        pixels = pixels[::-1]
    if orientation in (2, 3, 6, 7):
        pixels = pixels[:, ::-1]
    return np.ascontiguousarray(pixels)


def _upright_exif(exif: Image.Exif) -> bytes | None:
    """EXIF of the upright picture; None if there is none, or it is too broken to be written."""
    for tag in TIFF_STRUCTURE:
        exif.pop(tag, None)
    if not exif:
        return None
    exif[ORIENTATION] = 1
    try:
        return exif.tobytes()
    except (ValueError, TypeError, OverflowError, struct.error, KeyError):
        return None


def _encode(path: Path, pixels: NDArray[Any], like: PictureFile) -> bytes:
    check_can_hold(path, pixels)
    kind = check_writable_format(path)
    exif = _resized_exif(like.exif, pixels) if like.exif else None
    icc_profile = like.icc_profile
    if icc_profile and icc_profile[16:20] != (b"RGB " if pixels.ndim == 3 and pixels.shape[2] > 2 else b"GRAY"):
        icc_profile = None
    if loses_depth(path, pixels):
        pixels = np.round(pixels / 257).astype(np.uint8)
    if pixels.dtype == np.uint16:
        encode = sixteen_bit.encode_png if kind == "PNG" else sixteen_bit.encode_tiff
        return encode(pixels, exif, icc_profile, like.dpi)
    options = SAVE_OPTIONS[kind] | PictureFile(pixels, exif, icc_profile, like.dpi).info()
    out = io.BytesIO()
    try:
        Image.fromarray(pixels).save(out, kind, **options)
    except (OSError, ValueError) as error:  # such as a size that the format does not have
        raise ValueError(f"{path} cannot be written: {error}: let its name end in .png") from error
    return out.getvalue()


def _resized_exif(exif: bytes, pixels: NDArray[Any]) -> bytes:
    """EXIF whose width and height, if it has them, are those of the pixels."""
    tags = Image.Exif()
    tags.load(exif)
    photo = tags.get_ifd(ExifTags.IFD.Exif)
    if ExifTags.Base.ExifImageWidth in photo:
        photo[ExifTags.Base.ExifImageWidth] = pixels.shape[1]
        photo[ExifTags.Base.ExifImageHeight] = pixels.shape[0]
    return tags.tobytes()


@contextlib.contextmanager
def _large_pictures() -> Iterator[None]:
    """Lift Pillow's limit, which is one for the whole process, for MOST_PIXELS to take its place."""
    with _pillow_limit:
        before = Image.MAX_IMAGE_PIXELS
        Image.MAX_IMAGE_PIXELS = None
        try:
            yield
        finally:
            Image.MAX_IMAGE_PIXELS = before
