"""Metadata of a picture file, and how it follows changes to the pixels."""

import struct
from dataclasses import dataclass
from typing import Any

from PIL import ExifTags, Image, TiffTags

# TIFF tags that say how pixels are stored, or metadata that is kept apart from the EXIF.
STORAGE_TAG_NAMES = (
    "NewSubfileType SubfileType ImageWidth ImageLength BitsPerSample Compression PhotometricInterpretation FillOrder "
    "StripOffsets SamplesPerPixel RowsPerStrip StripByteCounts XResolution YResolution PlanarConfiguration "
    "ResolutionUnit Predictor ColorMap TileWidth TileLength TileOffsets TileByteCounts SubIFDs ExtraSamples "
    "SampleFormat JPEGTables YCbCrCoefficients YCbCrSubSampling YCbCrPositioning ReferenceBlackWhite XMP IptcNaaInfo "
    "PhotoshopInfo ICCProfile"
)
STORAGE_TAGS = [tag for tag, info in TiffTags.TAGS_V2.items() if info.name in STORAGE_TAG_NAMES.split()]


@dataclass(frozen=True)
class Metadata:
    """Metadata of a picture file.

    Attributes:
        exif: for upright pixels, and without the thumbnail, which would show the picture before the edit.
        icc_profile: color profile.
        dpi: horizontal and vertical resolution in pixels per inch.
    """

    exif: bytes | None = None
    icc_profile: bytes | None = None
    dpi: tuple[float, float] | None = None

    def as_pillow_info(self) -> dict[str, Any]:
        """Metadata that is present, under Pillow's names."""
        return {name: value for name, value in vars(self).items() if value is not None}


def upright_exif(exif: Image.Exif) -> bytes | None:
    """EXIF for pixels that were turned upright; None if there is none, or it is too damaged to be written."""
    for tag in STORAGE_TAGS:
        exif.pop(tag, None)
    if not exif:
        return None
    exif[ExifTags.Base.Orientation] = 1
    try:
        return exif.tobytes()
    except (ValueError, TypeError, OverflowError, struct.error, KeyError):
        return None


def resized_exif(exif: bytes, height: int, width: int) -> bytes:
    """EXIF with the given height and width in pixels, if it states them."""
    tags = Image.Exif()
    tags.load(exif)
    details = tags.get_ifd(ExifTags.IFD.Exif)
    if ExifTags.Base.ExifImageWidth in details:
        details[ExifTags.Base.ExifImageWidth] = width
        details[ExifTags.Base.ExifImageHeight] = height
    return tags.tobytes()
