"""AVIF, HEIC and JPEG 2000: pixels, depth, metadata, damage."""

import sys
from pathlib import Path
from typing import Any

import imagecodecs
import numpy as np
import pytest
from PIL import Image
from PIL.ExifTags import Base
from support.pixels import SRGB, noise

from psal.io.formats import check_can_hold, loses_depth
from psal.io.metadata import Metadata
from psal.io.photo import Photo

XMP = b'<x:xmpmeta xmlns:x="adobe:ns:meta/">caf\xc3\xa9</x:xmpmeta>'
IPTC = b"\x1c\x02\x05\x00\x05title"


def smooth(channels: int = 3, size: tuple[int, int] = (40, 50)) -> np.ndarray[Any, Any]:
    rows, columns = np.mgrid[: size[0], : size[1]]
    waves = [120 + 100 * np.sin(0.1 * rows + 0.07 * (k + 1) * columns) for k in range(channels)]
    return np.stack(waves, -1).astype(np.uint8)


def exif() -> bytes:
    tags = Image.Exif()
    tags[Base.Make] = "A camera"
    return tags.tobytes()


def needs_heif(suffix: str) -> None:
    if suffix in (".heic", ".heif"):
        pytest.importorskip("pillow_heif")


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize("channels", [None, 2, 3, 4])
def test_jpeg_2000_keeps_every_bit(channels: int | None, dtype: type, tmp_path: Path) -> None:
    pixels = noise(channels, dtype)
    Photo(pixels).save(tmp_path / "photo.jp2")
    again = Photo.open(tmp_path / "photo.jp2")
    assert again.format == "JPEG2000"
    np.testing.assert_array_equal(again.pixels, pixels)
    assert not loses_depth("photo.jp2", pixels)


@pytest.mark.parametrize("suffix", [".avif", ".heic", ".heif"])
@pytest.mark.parametrize("channels", [3, 4])
def test_lossy_formats_come_close(suffix: str, channels: int, tmp_path: Path) -> None:
    needs_heif(suffix)
    pixels = smooth(channels)
    Photo(pixels).save(tmp_path / f"photo{suffix}")
    again = Photo.open(tmp_path / f"photo{suffix}")
    assert again.pixels.shape == pixels.shape
    assert np.abs(again.pixels.astype(int) - pixels).mean() < 2
    assert loses_depth(f"photo{suffix}", pixels.astype(np.uint16))


@pytest.mark.parametrize("suffix", [".avif", ".heic", ".jp2"])
def test_metadata_is_kept(suffix: str, tmp_path: Path) -> None:
    needs_heif(suffix)
    path = tmp_path / f"photo{suffix}"
    Photo(smooth(), Metadata(exif(), SRGB, None, XMP, IPTC)).save(path)
    again = Photo.open(path).metadata
    assert (again.icc_profile, again.xmp) == (SRGB, XMP)
    assert again.iptc == (IPTC if suffix == ".jp2" else None)
    tags = Image.Exif()
    assert again.exif is not None
    tags.load(again.exif)
    assert tags[Base.Make] == "A camera"
    Photo.open(path).save(tmp_path / "photo.tif")
    assert Photo.open(tmp_path / "photo.tif").metadata.xmp == XMP


@pytest.mark.parametrize("suffix", [".avif", ".jp2"])
def test_metadata_too_long_for_jpeg_is_kept_here(suffix: str, tmp_path: Path) -> None:
    Photo(smooth(), Metadata(xmp=b"x" * 70_000)).save(tmp_path / f"photo{suffix}")
    assert Photo.open(tmp_path / f"photo{suffix}").metadata.xmp == b"x" * 70_000


@pytest.mark.parametrize("bits", [10, 12])
def test_more_than_8_bits_of_avif_are_read(bits: int, tmp_path: Path) -> None:
    values = (noise(3, np.uint16) >> (16 - bits)).astype(np.uint16)
    content = imagecodecs.avif_encode(values, level=100, bitspersample=bits, pixelformat="444")
    (tmp_path / "photo.avif").write_bytes(content)
    photo = Photo.open(tmp_path / "photo.avif")
    assert photo.depth == 16
    np.testing.assert_array_equal(np.round(photo.pixels * ((2**bits - 1) / 65535)), values)


def test_12_bits_of_jpeg_2000_are_scaled_to_16(tmp_path: Path) -> None:
    values = (noise(None, np.uint16) >> 4).astype(np.uint16)
    content = imagecodecs.jpeg2k_encode(values, level=0, codecformat="jp2", bitspersample=12, reversible=True)
    (tmp_path / "photo.jp2").write_bytes(content)
    photo = Photo.open(tmp_path / "photo.jp2")
    np.testing.assert_array_equal(np.round(photo.pixels * (4095 / 65535)), values)
    assert photo.pixels.max() > 65000


def test_a_bare_jpeg_2000_codestream_is_read(tmp_path: Path) -> None:
    pixels = noise()
    (tmp_path / "photo.j2k").write_bytes(imagecodecs.jpeg2k_encode(pixels, level=0, codecformat="j2k", reversible=True))
    np.testing.assert_array_equal(Photo.open(tmp_path / "photo.j2k").pixels, pixels)


def test_more_than_8_bits_of_heic_are_read(tmp_path: Path) -> None:
    pillow_heif = pytest.importorskip("pillow_heif")
    pixels = smooth().astype(np.uint16) * 257
    made = pillow_heif.from_bytes(mode="RGB;16", size=(50, 40), data=pixels.tobytes())
    made.save(tmp_path / "photo.heic", quality=-1, chroma=444, matrix_coefficients=0)
    photo = Photo.open(tmp_path / "photo.heic")
    assert photo.depth == 16
    assert np.abs(photo.pixels.astype(int) - pixels).max() < 128


@pytest.mark.parametrize("orientation", [3, 6])
def test_an_avif_is_turned_upright(orientation: int, tmp_path: Path) -> None:
    tags = Image.Exif()
    tags[Base.Orientation] = orientation
    Image.fromarray(smooth()).save(tmp_path / "photo.avif", exif=tags.tobytes(), quality=100, subsampling="4:4:4")
    expected = np.rot90(smooth(), 2 if orientation == 3 else -1)
    photo = Photo.open(tmp_path / "photo.avif")
    assert photo.pixels.shape == expected.shape
    assert np.abs(photo.pixels.astype(int) - expected).mean() < 2


@pytest.mark.parametrize("fraction", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("suffix", [".avif", ".heic", ".jp2"])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_a_truncated_file_is_refused_by_name(suffix: str, fraction: float, dtype: type, tmp_path: Path) -> None:
    needs_heif(suffix)
    path = tmp_path / f"broken{suffix}"
    Photo(noise(3, dtype, (40, 50))).save(path)
    path.write_bytes(path.read_bytes()[: int(fraction * path.stat().st_size)])
    with pytest.raises(ValueError, match=r"^[^\n]*broken[^\n]* is damaged[^\n]*: g[^\n]*$"):
        Photo.open(path)


def test_heic_without_the_plug_in_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pillow_heif", None)
    monkeypatch.delitem(Image.OPEN, "HEIF", raising=False)
    (tmp_path / "photo.heic").write_bytes(b"\0\0\0\x18ftypheic\0\0\0\0mif1heic" + bytes(100))
    with pytest.raises(ValueError, match=r"photo\.heic cannot be read: HEIC needs pillow-heif: pip install"):
        Photo.open(tmp_path / "photo.heic")


def test_heic_is_refused_before_the_work_if_it_cannot_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pillow_heif", None)
    with pytest.raises(ValueError, match=r"out\.heic cannot be written: HEIC needs pillow-heif: pip install"):
        check_can_hold("out.heic", noise())
