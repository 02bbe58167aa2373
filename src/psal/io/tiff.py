"""TIFF: write 8 and 16 bits per channel with all metadata, and read 16 bits, which Pillow cannot.

Pillow reads 8-bit TIFFs; tifffile reads 16-bit ones.
"""

import io
import logging
import zlib
from itertools import accumulate
from typing import Any

import numpy as np
import tifffile
from numpy.typing import NDArray
from PIL import Image
from PIL.ExifTags import Base as Tag
from tifffile import COMPRESSION, EXTRASAMPLE, PHOTOMETRIC, PREDICTOR, RESUNIT

from psal.io.metadata import IPTC_TAG, Metadata

STRIP_BYTES = 2**18
ZLIB_LEVEL = 1  # level 6 makes a 20-megapixel photo 2 % smaller, in 2.5 times the CPU time
EXIF_PREFIX = b"Exif\0\0"

# tifffile's messages about broken tags are of no use to users; applications that want them can still listen.
logging.getLogger("tifffile").addHandler(logging.NullHandler())


class UnknownLayoutError(ValueError):
    """An intact file whose channels are neither gray nor RGB, with or without straight alpha."""


def encode_tiff(pixels: NDArray[Any], metadata: Metadata) -> bytes:
    """Encode a TIFF: 8 bits per channel uncompressed, 16 bits with zlib.

    EXIF is stored as a TIFF without pixels. So the pixels' tags are added to the EXIF, and the pixels appended to it.

    Args:
        pixels: ``(H, W)`` or ``(H, W, C)``, uint8 or uint16, contiguous. 16-bit gray with alpha becomes RGBA: few
            programs read it, and Pillow does not.
        metadata: all of it is kept.

    Raises:
        ValueError: if the file would exceed 4 GB.
    """
    compressed = pixels.dtype == np.uint16
    if compressed and pixels.shape[2:] == (2,):
        pixels = np.ascontiguousarray(pixels[..., [0, 0, 0, 1]])
    height, width, channels = (*pixels.shape, 1)[:3]
    rows = max(1, STRIP_BYTES // pixels[0].nbytes)
    strips = [_encode_strip(pixels[top : top + rows], compressed) for top in range(0, height, rows)]
    sizes = [len(strip) for strip in strips]
    if sum(sizes) > 2**32 - 2**20:
        raise ValueError("TIFF files end at 4 GB")
    tags = Image.Exif()
    if metadata.exif:
        tags.load(metadata.exif)
    tags.endian = "<"
    tags[Tag.ImageWidth], tags[Tag.ImageLength] = width, height
    tags[Tag.BitsPerSample] = (8 * pixels.itemsize,) * channels
    tags[Tag.Compression] = COMPRESSION.ADOBE_DEFLATE if compressed else COMPRESSION.NONE
    tags[Tag.Predictor] = PREDICTOR.HORIZONTAL if compressed else PREDICTOR.NONE
    tags[Tag.PhotometricInterpretation] = PHOTOMETRIC.MINISBLACK if channels < 3 else PHOTOMETRIC.RGB
    tags[Tag.SamplesPerPixel] = channels
    tags[Tag.RowsPerStrip] = rows
    tags[Tag.StripByteCounts] = tuple(sizes)
    tags[Tag.StripOffsets] = tuple(accumulate(sizes[:-1], initial=0))  # Pillow adds the size of the tags
    if channels in (2, 4):
        tags[Tag.ExtraSamples] = EXTRASAMPLE.UNASSALPHA
    if metadata.dpi:
        tags[Tag.XResolution], tags[Tag.YResolution] = metadata.dpi
        tags[Tag.ResolutionUnit] = RESUNIT.INCH
    for tag, value in (
        (Tag.InterColorProfile, metadata.icc_profile),
        (Tag.XMLPacket, metadata.xmp),
        (IPTC_TAG, metadata.iptc),
    ):
        if value:
            tags[tag] = value
    return b"".join([tags.tobytes().removeprefix(EXIF_PREFIX), *strips])


def decode_16_bit_tiff(content: bytes) -> NDArray[Any]:
    """Decode a 16-bit TIFF to uint16 ``(H, W)`` or ``(H, W, C)``.

    Raises:
        UnknownLayoutError: if its channels cannot be used; the message is to follow the name of the file.
    """
    with tifffile.TiffFile(io.BytesIO(content)) as file:
        page = file.pages[0]
        assert isinstance(page, tifffile.TiffPage)
        colors = page.samplesperpixel - len(page.extrasamples)
        known_colors = (page.photometric, colors) in ((PHOTOMETRIC.MINISBLACK, 1), (PHOTOMETRIC.RGB, 3))
        known_alpha = tuple(page.extrasamples) in ((), (EXTRASAMPLE.UNASSALPHA,))
        if page.dtype != np.uint16 or not known_colors or not known_alpha:
            raise UnknownLayoutError(
                "is a 16-bit TIFF, but not gray or RGB with or without straight alpha: convert it to RGB"
            )
        pixels = page.asarray()
        if page.planarconfig == tifffile.PLANARCONFIG.SEPARATE and page.samplesperpixel > 1:
            pixels = np.moveaxis(pixels, 0, -1)
        return pixels


def bits_per_channel(image: Image.Image) -> int:
    """Bits per channel of a TIFF that Pillow opened; for color, Pillow's mode does not tell."""
    bits = image.tag_v2.get(Tag.BitsPerSample, (1,))  # type: ignore[attr-defined]
    return int(max(bits)) if isinstance(bits, tuple) else int(bits)


def unsupported_dtype(content: bytes) -> str | None:
    """Type of the values of a TIFF, such as float32, if it is neither uint8 nor uint16; None for other files."""
    try:
        with tifffile.TiffFile(io.BytesIO(content)) as file:
            found = file.pages[0].dtype
    except Exception:  # tifffile raises many kinds on damaged files
        return None
    return None if found is None or found in (np.uint8, np.uint16) else str(found)


def _encode_strip(rows: NDArray[Any], compressed: bool) -> bytes:
    if not compressed:
        return rows.tobytes()
    differences = np.diff(rows, axis=1, prepend=rows.dtype.type(0))  # modulo 2**16, as the predictor has it
    return zlib.compress(differences.astype("<u2", copy=False).tobytes(), ZLIB_LEVEL)
