"""Metadata of a picture file: read it, and keep it true to the pixels."""

import re
import struct
from dataclasses import dataclass
from typing import Any

from PIL import Image, TiffTags
from PIL.ExifTags import IFD
from PIL.ExifTags import Base as Tag

# TIFF tags that say how pixels are stored, or hold metadata that is kept apart from the EXIF.
STORAGE_TAG_NAMES = (
    "NewSubfileType SubfileType ImageWidth ImageLength BitsPerSample Compression PhotometricInterpretation FillOrder "
    "StripOffsets SamplesPerPixel RowsPerStrip StripByteCounts XResolution YResolution PlanarConfiguration "
    "ResolutionUnit Predictor ColorMap TileWidth TileLength TileOffsets TileByteCounts SubIFDs ExtraSamples "
    "SampleFormat JPEGTables YCbCrCoefficients YCbCrSubSampling YCbCrPositioning ReferenceBlackWhite XMP IptcNaaInfo "
    "PhotoshopInfo ICCProfile"
)
STORAGE_TAGS = [tag for tag, info in TiffTags.TAGS_V2.items() if info.name in STORAGE_TAG_NAMES.split()]

IPTC_TAG = 33723  # of a TIFF
IPTC_RESOURCE = 0x0404  # Photoshop's number, used in JPEG
XMP_KEYWORD = "XML:com.adobe.xmp"  # of a PNG text chunk
MAX_DPI = 65_535  # as much as JPEG can hold
XMP_ORIENTATION = re.compile(rb'(tiff:Orientation(?:="|>))[2-8]')
XMP_THUMBNAILS = re.compile(rb"<xmp:Thumbnails>.*?</xmp:Thumbnails>", re.DOTALL)


@dataclass(frozen=True)
class Metadata:
    """Metadata of a picture file. Thumbnails are removed, since they would show the picture before the edit.

    Attributes:
        exif: with the orientation of upright pixels.
        icc_profile: color profile.
        dpi: horizontal and vertical resolution in pixels per inch.
        xmp: XMP packet (XML).
        iptc: IPTC-IIM records; JPEG and TIFF only.
    """

    exif: bytes | None = None
    icc_profile: bytes | None = None
    dpi: tuple[float, float] | None = None
    xmp: bytes | None = None
    iptc: bytes | None = None

    def as_pillow_info(self) -> dict[str, Any]:
        """What Pillow knows of it, as in the ``info`` of a Pillow image."""
        found = {"exif": self.exif, "icc_profile": self.icc_profile, "dpi": self.dpi, "xmp": self.xmp}
        return {name: value for name, value in found.items() if value is not None}


def read_metadata(image: Image.Image) -> Metadata:
    """Metadata of a file that Pillow opened, for its pixels turned upright."""
    xmp = image.info.get("xmp")
    return Metadata(
        exif=_upright_exif(image.getexif()),
        icc_profile=image.info.get("icc_profile"),
        dpi=_dpi(image),
        xmp=_upright_xmp(xmp) if isinstance(xmp, bytes) else None,
        iptc=_iptc(image),
    )


def _dpi(image: Image.Image) -> tuple[float, float] | None:
    """Resolution of a file that Pillow opened; None if it makes no sense."""
    horizontal, vertical = map(float, image.info.get("dpi", (0, 0)))
    return (horizontal, vertical) if 0 < horizontal <= MAX_DPI and 0 < vertical <= MAX_DPI else None


def orientation(image: Image.Image) -> int:
    """Orientation of a file that Pillow opened: 1 (upright) to 8; other values have no meaning."""
    return int(image.getexif().get(Tag.Orientation, 1))


def resized_exif(exif: bytes, height: int, width: int) -> bytes:
    """EXIF with the given height and width in pixels, if it states them."""
    tags = Image.Exif()
    tags.load(exif)
    details = tags.get_ifd(IFD.Exif)
    if Tag.ExifImageWidth in details:
        details[Tag.ExifImageWidth] = width
        details[Tag.ExifImageHeight] = height
    return tags.tobytes()


def _upright_exif(exif: Image.Exif) -> bytes | None:
    """EXIF for pixels that were turned upright; None if there is none, or it is too damaged to be written."""
    for tag in STORAGE_TAGS:
        exif.pop(tag, None)
    if not exif:
        return None
    exif[Tag.Orientation] = 1
    try:
        return exif.tobytes()
    except (ValueError, TypeError, OverflowError, struct.error, KeyError):
        return None


def _upright_xmp(xmp: bytes) -> bytes:
    return XMP_THUMBNAILS.sub(b"", XMP_ORIENTATION.sub(rb"\g<1>1", xmp))


def _iptc(image: Image.Image) -> bytes | None:
    """IPTC of a JPEG or a TIFF."""
    found = image.info.get("photoshop", {}).get(IPTC_RESOURCE)
    if image.format == "TIFF":
        found = image.tag_v2.get(IPTC_TAG)  # type: ignore[attr-defined]
    return found if isinstance(found, bytes) else None
