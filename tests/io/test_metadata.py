import io
import struct
from pathlib import Path

import numpy as np
import pytest
import tifffile
from PIL import Image, ImageOps, IptcImagePlugin
from PIL.ExifTags import IFD, Base
from support.pixels import HEIGHT, SRGB, WIDTH, noise

from psal.io.metadata import Metadata
from psal.io.photo import Photo

GPS = {1: "N", 2: (47.0, 22.0, 8.5)}
XMP = b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:li>caf\xc3\xa9</rdf:li></x:xmpmeta>'
IPTC = b"\x1c\x02\x05\x00\x05title"  # record 2, dataset 5: the title


def camera_exif(orientation: int = 1) -> bytes:
    exif = Image.Exif()
    exif[Base.Make] = "A camera"
    exif[Base.Orientation] = orientation
    details = exif.get_ifd(IFD.Exif)
    details[Base.ExposureTime] = 0.25
    details[Base.ExifImageWidth], details[Base.ExifImageHeight] = WIDTH, HEIGHT
    details[IFD.Interop] = {1: "R98"}
    exif.get_ifd(IFD.GPSInfo).update(GPS)
    return exif.tobytes()


def read_exif(path: Path) -> Image.Exif:
    return Image.open(io.BytesIO(path.read_bytes())).getexif()


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize("suffix", [".png", ".tif", ".webp", ".jpg"])
@pytest.mark.parametrize("channels", [None, 2, 3, 4])
def test_files_keep_all_metadata(suffix: str, channels: int | None, dtype: type, tmp_path: Path) -> None:
    if channels in (2, 4) and suffix == ".jpg":
        pytest.skip("the format has no alpha")
    profile = SRGB if channels in (3, 4) else None
    path = tmp_path / f"photo{suffix}"
    Photo(noise(channels, dtype), Metadata(camera_exif(), profile, (300.0, 300.0), XMP, IPTC)).save(path)
    again = Photo.open(path).metadata
    assert (again.icc_profile, again.xmp) == (profile, XMP)
    assert again.iptc == (IPTC if suffix in (".jpg", ".tif") else None)
    if suffix != ".webp":
        assert again.dpi == pytest.approx((300, 300), rel=1e-3)
    exif = read_exif(path)
    assert exif[Base.Make] == "A camera"
    assert exif.get_ifd(IFD.Exif)[Base.ExposureTime] == 0.25
    assert exif.get_ifd(IFD.Interop) == {1: "R98"}
    assert exif.get_ifd(IFD.GPSInfo) == GPS


def test_metadata_goes_from_format_to_format(tmp_path: Path) -> None:
    photo = Photo(noise(), Metadata(camera_exif(), SRGB, (300.0, 300.0), XMP, IPTC))
    for name in ("1.jpg", "2.tif", "3.jpg", "4.png", "5.webp", "6.tif"):
        photo.save(tmp_path / name)
        photo = Photo.open(tmp_path / name)
        assert (photo.metadata.icc_profile, photo.metadata.xmp) == (SRGB, XMP)
        assert (photo.metadata.iptc == IPTC) == (name < "4")
        assert read_exif(tmp_path / name).get_ifd(IFD.GPSInfo) == GPS


def test_bmp_keeps_the_resolution(tmp_path: Path) -> None:
    Photo(noise(), Metadata(camera_exif(), SRGB, (300.0, 300.0), XMP, IPTC)).save(tmp_path / "photo.bmp")
    assert Photo.open(tmp_path / "photo.bmp").metadata.dpi == pytest.approx((300, 300), rel=1e-3)


@pytest.mark.parametrize("suffix", [".jpg", ".tif"])
def test_other_programs_find_the_iptc(suffix: str, tmp_path: Path) -> None:
    Photo(noise(), Metadata(iptc=IPTC)).save(tmp_path / f"photo{suffix}")
    with Image.open(tmp_path / f"photo{suffix}") as image:
        assert IptcImagePlugin.getiptcinfo(image) == {(2, 5): b"title"}


@pytest.mark.parametrize("depth", [8, 16])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_files_are_turned_upright(orientation: int, depth: int, tmp_path: Path) -> None:
    pixels = noise()
    image = Image.fromarray(pixels)
    image.getexif()[Base.Orientation] = orientation
    expected = np.asarray(ImageOps.exif_transpose(image))
    path = tmp_path / "photo.png"
    Photo(pixels if depth == 8 else pixels.astype(np.uint16) * 257, Metadata(camera_exif(orientation))).save(path)
    photo = Photo.open(path)
    np.testing.assert_array_equal(photo.pixels if depth == 8 else photo.pixels // 257, expected)
    photo.save(path)
    assert read_exif(path)[Base.Orientation] == 1
    details = read_exif(path).get_ifd(IFD.Exif)
    assert (details[Base.ExifImageHeight], details[Base.ExifImageWidth]) == expected.shape[:2]
    np.testing.assert_array_equal(Photo.open(path).pixels, photo.pixels)


@pytest.mark.parametrize("xmp", [b'<a tiff:Orientation="6"/>', b"<tiff:Orientation>6</tiff:Orientation>"])
def test_the_orientation_in_xmp_becomes_upright(xmp: bytes, tmp_path: Path) -> None:
    Photo(noise(), Metadata(camera_exif(6), xmp=xmp)).save(tmp_path / "photo.jpg")
    photo = Photo.open(tmp_path / "photo.jpg")
    assert (photo.height, photo.width) == (WIDTH, HEIGHT)
    assert photo.metadata.xmp == xmp.replace(b"6", b"1")


def test_exif_states_the_size_of_the_pixels_that_are_saved(tmp_path: Path) -> None:
    photo = Photo(noise(), Metadata(camera_exif()))
    photo.with_pixels(noise(size=(22, 34))).save(tmp_path / "photo.jpg")
    details = read_exif(tmp_path / "photo.jpg").get_ifd(IFD.Exif)
    assert (details[Base.ExifImageHeight], details[Base.ExifImageWidth]) == (22, 34)


def test_the_thumbnail_in_exif_is_removed(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[Base.Make] = "A camera"
    first = exif.tobytes()
    assert first.startswith(b"Exif\0\0II*\0") or first.startswith(b"Exif\0\0MM\0*")
    order = "<" if first[6:8] == b"II" else ">"
    body = first[6:]
    entries = struct.unpack(order + "H", body[8:10])[0]
    link = 10 + 12 * entries
    marker = b"THE OLD PICTURE"
    thumbnail = struct.pack(order + "HHHIIHHIII", 2, 513, 4, 1, len(body) + 30, 514, 4, 1, len(marker), 0)
    body = body[:link] + struct.pack(order + "I", len(body)) + body[link + 4 :] + thumbnail + marker
    Image.fromarray(noise()).save(tmp_path / "photo.jpg", exif=b"Exif\0\0" + body)
    assert marker in (tmp_path / "photo.jpg").read_bytes()
    Photo.open(tmp_path / "photo.jpg").save(tmp_path / "out.jpg")
    assert marker not in (tmp_path / "out.jpg").read_bytes()
    assert read_exif(tmp_path / "out.jpg")[Base.Make] == "A camera"


def test_the_thumbnail_in_xmp_is_removed(tmp_path: Path) -> None:
    xmp = b"<a><xmp:Thumbnails>\nthe old picture\n</xmp:Thumbnails><b/></a>"
    Photo(noise(), Metadata(xmp=xmp)).save(tmp_path / "photo.jpg")
    assert Photo.open(tmp_path / "photo.jpg").metadata.xmp == b"<a><b/></a>"


def test_a_gray_profile_is_left_out_of_a_color_file(tmp_path: Path) -> None:
    profile = SRGB[:16] + b"GRAY" + SRGB[20:]
    for channels, kept in ((None, profile), (3, None)):
        Photo(noise(channels), Metadata(icc_profile=profile)).save(tmp_path / "photo.png")
        assert Photo.open(tmp_path / "photo.png").metadata.icc_profile == kept


def test_metadata_too_long_for_jpeg_is_left_out(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif.get_ifd(IFD.Exif)[Base.MakerNote] = b"x" * 70_000
    photo = Photo(noise(), Metadata(exif.tobytes(), SRGB, xmp=b"x" * 70_000, iptc=b"x" * 70_000))
    photo.save(tmp_path / "photo.jpg")
    again = Photo.open(tmp_path / "photo.jpg").metadata
    assert (again.exif, again.icc_profile, again.xmp, again.iptc) == (None, SRGB, None, None)


@pytest.mark.parametrize("length", [65_399, 65_400])
def test_the_longest_metadata_fits_into_jpeg(length: int, tmp_path: Path) -> None:
    Photo(noise(), Metadata(xmp=b"x" * length, iptc=b"x" * length)).save(tmp_path / "photo.jpg")
    again = Photo.open(tmp_path / "photo.jpg").metadata
    assert (again.xmp, again.iptc) == (b"x" * length, b"x" * length)


@pytest.mark.parametrize("suffix", [".png", ".jpg", ".tif", ".webp", ".bmp"])
@pytest.mark.parametrize("dpi", [4_000_000_000, 70_000, 0])
def test_a_resolution_that_makes_no_sense_is_dropped(dpi: int, suffix: str, tmp_path: Path) -> None:
    tifffile.imwrite(tmp_path / "photo.tif", noise(3), resolution=(dpi, 72), resolutionunit="INCH")
    photo = Photo.open(tmp_path / "photo.tif")
    assert photo.metadata.dpi is None
    photo.save(tmp_path / f"again{suffix}")
