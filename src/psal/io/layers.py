"""Layers of a scene: pictures of any depth and number of channels, read and written without loss.

8 and 16 bits go through :class:`psal.Photo`, which keeps all metadata. Other TIFFs (floats, 32-bit integers, more than
four channels) go through tifffile, and .npy through NumPy.
"""

import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tifffile
from numpy.typing import NDArray

from psal.io.atomic import write_atomically
from psal.io.formats import FORMAT_BY_SUFFIX
from psal.io.photo import Photo

TIFF_STARTS = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
# Resolution, color profile, XMP, IPTC, georeference, GDAL's metadata and its value for missing data.
KEPT_TAGS = (700, 33550, 33723, 33922, 34264, 34675, 34735, 34736, 34737, 42112, 42113)

Write = Callable[[Path, NDArray[Any]], None]


@dataclass(frozen=True)
class Layer:
    """A layer and the way to write another one like it.

    Attributes:
        pixels: ``(H, W)`` or ``(H, W, C)``, any dtype.
        suffixes: of the files that can hold it.
    """

    pixels: NDArray[Any]
    suffixes: tuple[str, ...]
    _write: Write

    def save(self, path: Path, pixels: NDArray[Any]) -> None:
        """Write other pixels of the same shape and dtype, with the metadata of this layer."""
        self._write(path, pixels)


def open_layer(path: Path) -> Layer:
    """Read a layer.

    Raises:
        OSError: if the file cannot be read.
        ValueError: if it is not a layer; the message names the file.
    """
    if path.suffix.lower() == ".npy":
        return _open_array(path)
    try:
        photo = Photo.open(path)
    except ValueError:
        if path.read_bytes()[:4] not in TIFF_STARTS:
            raise
        return _open_tiff(path)
    return Layer(photo.pixels, tuple(FORMAT_BY_SUFFIX), lambda out, pixels: photo.with_pixels(pixels).save(out))


def _open_array(path: Path) -> Layer:
    try:
        pixels = np.load(path, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise ValueError(f"{path} is damaged, or not an array: give a .npy file of numbers") from error
    if not isinstance(pixels, np.ndarray) or pixels.ndim not in (2, 3):
        raise ValueError(f"{path} must be an array (H, W) or (H, W, C), got shape {getattr(pixels, 'shape', ())}")

    def write(out: Path, pixels: NDArray[Any]) -> None:
        content = io.BytesIO()
        np.save(content, pixels, allow_pickle=False)
        write_atomically(out, content.getvalue())

    return Layer(pixels, (".npy",), write)


def _open_tiff(path: Path) -> Layer:
    """A TIFF that :class:`psal.Photo` does not hold."""
    try:
        with tifffile.TiffFile(path) as file:
            if len(file.pages) > 1:
                raise ValueError(f"{path} has {len(file.pages)} pages: save the one you want as a file of its own")
            page = file.pages.first
            pixels = page.asarray()
            if page.planarconfig == tifffile.PLANARCONFIG.SEPARATE and page.samplesperpixel > 1:
                pixels = np.moveaxis(pixels, 0, -1)
            tags = [page.tags[code] for code in KEPT_TAGS if code in page.tags]
            options: dict[str, Any] = {
                "byteorder": file.byteorder,
                "photometric": page.photometric,
                "extrasamples": page.extrasamples,
                "extratags": [(tag.code, tag.dtype, tag.count, tag.value, True) for tag in tags],
            }
            if "XResolution" in page.tags and "YResolution" in page.tags:
                options["resolution"] = page.tags["XResolution"].value, page.tags["YResolution"].value
                options["resolutionunit"] = page.resolutionunit
    except (tifffile.TiffFileError, IndexError, KeyError, RuntimeError, OSError) as error:
        raise ValueError(f"{path} is damaged or cut off: get the file again ({error})") from error
    if pixels.ndim not in (2, 3):
        raise ValueError(f"{path} must be (H, W) or (H, W, C), got shape {pixels.shape}")

    def write(out: Path, pixels: NDArray[Any]) -> None:
        content = io.BytesIO()
        tifffile.imwrite(
            content, pixels, planarconfig="contig" if pixels.ndim == 3 else None, compression="zlib", metadata=None,
            software=False, **options,
        )  # fmt: skip
        write_atomically(out, content.getvalue())

    return Layer(pixels, (".tif", ".tiff"), write)
