"""A photograph: pixels with the metadata of the file they came from."""

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from psal.io.atomic import write_atomically
from psal.io.decode import decode
from psal.io.encode import encode
from psal.io.formats import check_can_hold, output_format, to_uint8
from psal.io.metadata import Metadata

MAX_PIXELS = 500_000_000
MAX_NOTEBOOK_SIDE = 1024  # pixels
NO_METADATA = Metadata()


@dataclass(frozen=True, eq=False, repr=False)
class Photo:
    """Pixels with the metadata of the file they came from. It never changes; edits make a new one.

    Args:
        pixels: ``(H, W)`` or ``(H, W, C)``, uint8 or uint16, upright; C is 2 (gray and alpha), 3 (RGB) or 4 (RGBA).
            The attribute is read-only: ``np.array(photo)`` makes a copy to write to.
        metadata: EXIF, XMP, IPTC, color profile and resolution.
        format: name of the format of the file, such as ``"JPEG"``; None if there is no file.

    Raises:
        ValueError, TypeError: if the pixels are not as described.

    >>> photo = Photo(np.zeros((20, 30, 3), np.uint16))
    >>> photo
    <Photo 30 × 20, 3 channels, 16 bits>
    >>> np.asarray(photo).shape
    (20, 30, 3)
    """

    pixels: NDArray[Any]
    metadata: Metadata = NO_METADATA
    format: str | None = None

    def __post_init__(self) -> None:
        pixels = self.pixels
        if not isinstance(pixels, np.ndarray) or pixels.dtype not in (np.uint8, np.uint16):
            kind = pixels.dtype if isinstance(pixels, np.ndarray) else type(pixels).__name__
            raise TypeError(f"pixels must be an array of uint8 or uint16, got {kind}")
        pixels = pixels[..., 0] if pixels.shape[2:] == (1,) else pixels.view()
        pixels.setflags(write=False)
        object.__setattr__(self, "pixels", pixels)
        if pixels.size == 0 or pixels.ndim not in (2, 3) or (pixels.ndim == 3 and pixels.shape[2] > 4):
            raise ValueError(f"pixels must have the shape (H, W) or (H, W, C) with C up to 4, got {pixels.shape}")

    @classmethod
    def open(cls, path: str | os.PathLike[str], max_pixels: int = MAX_PIXELS) -> Self:
        """Read a file and rotate it upright by its orientation tag.

        Args:
            path: PNG, JPEG, TIFF, WebP, AVIF, HEIC (with the extra ``psal[heic]``), JPEG 2000, BMP or GIF; gray or RGB,
                with or without alpha, 8 to 16 bits per channel. Palettes become RGB or RGBA, CMYK with a color profile
                becomes sRGB.
            max_pixels: files with more pixels are refused before they are decoded.

        Raises:
            OSError: if the file does not exist or cannot be read.
            ValueError: if it is damaged or not a picture of this kind; the message names the file.
        """
        try:
            content = Path(path).read_bytes()
        except FileNotFoundError:
            raise FileNotFoundError(f"{path}: there is no such file") from None
        except IsADirectoryError:
            raise IsADirectoryError(f"{path} is a folder: give a file") from None
        except OSError as error:
            raise OSError(f"{path} cannot be read: {error.strerror}") from error
        return cls(*decode(content, str(path), max_pixels))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file atomically, with the metadata.

        JPEG, AVIF and HEIC are lossy (:data:`psal.io.formats.JPEG_QUALITY` and so on); the rest is lossless.

        Args:
            path: its suffix names the format: .png, .jpg, .tif, .webp, .avif, .heic, .jp2 or .bmp. PNG, TIFF and
                JPEG 2000 have 16 bits per channel, the others 8. BMP keeps no metadata but the resolution.

        Raises:
            ValueError: if the format cannot hold the photo.
            OSError: if the file cannot be written.
        """
        check_can_hold(path, self.pixels)
        try:
            content = encode(self.pixels, self.metadata, output_format(path))
        except (OSError, ValueError) as error:  # for example WebP, which ends at 16383 pixels per side
            raise ValueError(f"{path} cannot be written: {error}: let its name end in .png") from error
        write_atomically(Path(path), content)

    def with_pixels(self, pixels: NDArray[Any]) -> Self:
        """Copy with other pixels, of any size, and the same metadata."""
        return replace(self, pixels=pixels)

    def to_pillow(self) -> Image.Image:
        """Convert to a Pillow image with the metadata in its ``info``.

        16-bit gray stays 16 bits; 16-bit color becomes 8 bits, since Pillow has no 16-bit color.
        """
        pixels = self.pixels if self.pixels.ndim == 2 else to_uint8(self.pixels)
        image = Image.fromarray(pixels)
        image.info.update(self.metadata.as_pillow_info())
        return image

    @property
    def width(self) -> int:
        """Pixels per row."""
        return int(self.pixels.shape[1])

    @property
    def height(self) -> int:
        """Rows."""
        return int(self.pixels.shape[0])

    @property
    def depth(self) -> int:
        """Bits per channel: 8 or 16."""
        return 8 * self.pixels.dtype.itemsize

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.pixels, dtype=dtype, copy=copy)

    def _repr_png_(self) -> bytes:
        image = Image.fromarray(to_uint8(self.pixels))
        image.thumbnail((MAX_NOTEBOOK_SIDE, MAX_NOTEBOOK_SIDE))
        return encode(np.asarray(image), Metadata(icc_profile=self.metadata.icc_profile), "PNG")

    def __repr__(self) -> str:
        channels = "gray" if self.pixels.ndim == 2 else f"{self.pixels.shape[2]} channels"
        parts = [f"{self.width} × {self.height}", channels, f"{self.depth} bits"]
        return f"<Photo {', '.join(parts + ([self.format] if self.format else []))}>"
