"""16-bit PNG and TIFF, which Pillow cannot hold in colour: imagecodecs and tifffile read and write them."""

import io
import logging
import struct
import zlib
from typing import Any

import imagecodecs
import numpy as np
import tifffile
from numpy.typing import NDArray
from PIL import ExifTags, Image, TiffTags
from PIL.TiffImagePlugin import ImageFileDirectory_v2
from tifffile import PHOTOMETRIC

from psal.io.metadata import Metadata

PNG_DEPTH_BYTE = 24  # of the file, in the header chunk that every PNG starts with
PNG_HEADER_END = 33
BITS_PER_SAMPLE = 258
TIFF_TEXTS = (270, 271, 272, 305, 306, 315, 33432)  # description, make, model, software, date, artist, copyright
ICC_PROFILE_TAG = 34675

# What tifffile has to say of a broken tag would stand between the lines of ours; who wants it can still listen.
logging.getLogger("tifffile").addHandler(logging.NullHandler())


class UnknownLayoutError(ValueError):
    """A sound file whose channels mean something else than grey or RGB, with or without plain alpha."""


def decode(image: Image.Image, content: bytes) -> NDArray[Any] | None:
    """The 16-bit pixels of a PNG or TIFF.

    Args:
        image: as Pillow opened it.
        content: the whole file.

    Returns:
        uint16 ``(H, W)`` or ``(H, W, C)``; None if it is not such a file.

    Raises:
        UnknownLayoutError: if its channels cannot be used; the message goes on after the file's name.
    """
    if image.format == "PNG" and content[PNG_DEPTH_BYTE] == 16:
        return np.asarray(imagecodecs.png_decode(content))
    if image.format == "TIFF" and _bits(image) == 16:
        return _decode_tiff(content)
    return None


def tiff_number_type(content: bytes) -> str | None:
    """What the channels of a TIFF are made of, such as float32, if that is not 8 or 16 bits; None for other files."""
    try:
        with tifffile.TiffFile(io.BytesIO(content)) as file:
            found = file.pages[0].dtype
    except Exception:  # of a file that is damaged, any
        return None
    return None if found is None or found in (np.uint8, np.uint16) else str(found)


def encode_png(pixels: NDArray[Any], metadata: Metadata) -> bytes:
    """A PNG file of uint16 pixels ``(H, W)`` or ``(H, W, C)``."""
    content = bytes(imagecodecs.png_encode(pixels))
    chunks = b""
    if metadata.icc_profile:
        chunks += _png_chunk(b"iCCP", b"ICC profile\0\0" + zlib.compress(metadata.icc_profile))
    if metadata.dpi:
        chunks += _png_chunk(b"pHYs", struct.pack(">IIB", *(round(x / 0.0254) for x in metadata.dpi), 1))
    if metadata.exif:
        chunks += _png_chunk(b"eXIf", metadata.exif.removeprefix(b"Exif\0\0"))
    return content[:PNG_HEADER_END] + chunks + content[PNG_HEADER_END:]


def encode_tiff(pixels: NDArray[Any], metadata: Metadata) -> bytes:
    """A TIFF file of uint16 pixels ``(H, W)`` or ``(H, W, C)``; of the EXIF it takes texts, exposure and place."""
    if pixels.ndim == 3 and pixels.shape[2] == 2:  # grey and alpha: few programs open that as a TIFF
        pixels = np.ascontiguousarray(pixels[..., [0, 0, 0, 1]])
    tags = Image.Exif()
    if metadata.exif:
        tags.load(metadata.exif)
    directories = _directories(tags)
    extra: list[tuple[int, str, int, Any, bool]]
    extra = [(tag, "s", 0, str(tags[tag]), True) for tag in TIFF_TEXTS if tag in tags]
    extra += [(_stand_in(tag), "I", 1, 0, True) for tag in directories]
    if metadata.icc_profile:
        extra.append((ICC_PROFILE_TAG, "B", len(metadata.icc_profile), metadata.icc_profile, True))
    out = io.BytesIO()
    tifffile.imwrite(
        out,
        pixels,
        photometric="minisblack" if pixels.ndim == 2 else "rgb",
        extrasamples=["unassalpha"] if pixels.ndim == 3 and pixels.shape[2] == 4 else None,
        compression="zlib",
        predictor=True,
        resolution=metadata.dpi,
        resolutionunit="inch" if metadata.dpi else None,
        metadata=None,
        software=False,
        byteorder="<",
        extratags=extra,
    )
    for tag, directory in directories.items():
        _append_directory(out, tag, directory)
    return out.getvalue()


def _directories(exif: Image.Exif) -> dict[int, dict[int, Any]]:
    """What an EXIF says of exposure and place, by the tag that links to it."""
    found = {tag: dict(exif.get_ifd(tag)) for tag in (ExifTags.IFD.Exif, ExifTags.IFD.GPSInfo)}
    if ExifTags.IFD.Interop in found[ExifTags.IFD.Exif]:  # a link, which would lead nowhere
        found[ExifTags.IFD.Exif][ExifTags.IFD.Interop] = exif.get_ifd(ExifTags.IFD.Interop)
    return {tag: directory for tag, directory in found.items() if directory}


def _stand_in(tag: int) -> int:
    """A free tag right before a directory's, which tifffile would leave out."""
    return tag - 1


def _append_directory(out: io.BytesIO, tag: int, directory: dict[int, Any]) -> None:
    """Put a directory of tags at the end of a TIFF, and a link to it into the place of its stand-in."""
    out.seek(0)
    with tifffile.TiffFile(out) as file:
        page = file.pages[0]
        assert isinstance(page, tifffile.TiffPage)
        link = page.tags[_stand_in(tag)].offset
        if file.is_bigtiff:  # of 4 GB and more, with links of another size: the pixels matter more
            return
    place = out.seek(0, io.SEEK_END)
    place += out.write(b"\0" * (place % 2))  # directories begin at even places
    tags = ImageFileDirectory_v2(b"II*\0\0\0\0\0", group=tag)
    for name, value in directory.items():
        tags[name] = value
    out.write(tags.tobytes(place))
    out.seek(link)
    out.write(struct.pack("<HHII", tag, TiffTags.LONG, 1, place))


def _bits(image: Image.Image) -> int:
    bits = image.tag_v2.get(BITS_PER_SAMPLE, (1,))  # type: ignore[attr-defined]
    return int(max(bits)) if isinstance(bits, tuple) else int(bits)


def _decode_tiff(content: bytes) -> NDArray[Any]:
    with tifffile.TiffFile(io.BytesIO(content)) as file:
        page = file.pages[0]
        assert isinstance(page, tifffile.TiffPage)
        colors = page.samplesperpixel - len(page.extrasamples)
        known_colors = (page.photometric, colors) in ((PHOTOMETRIC.MINISBLACK, 1), (PHOTOMETRIC.RGB, 3))
        known_alpha = tuple(page.extrasamples) in ((), (tifffile.EXTRASAMPLE.UNASSALPHA,))
        if page.dtype != np.uint16 or not known_colors or not known_alpha:
            raise UnknownLayoutError(
                "is a 16-bit TIFF of another kind than grey or RGB with or without plain alpha: convert it to RGB"
            )
        pixels = page.asarray()
        if page.planarconfig == tifffile.PLANARCONFIG.SEPARATE and page.samplesperpixel > 1:
            pixels = np.moveaxis(pixels, 0, -1)
        return pixels


def _png_chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
