import io
import struct
import zlib
from pathlib import Path
from typing import Any

import imagecodecs
import numpy as np
import pytest
import tifffile
from PIL import Image, ImageOps
from support.pixels import HEIGHT, SRGB, WIDTH, noise

from psal.io.metadata import Metadata
from psal.io.photo import MAX_PIXELS, Photo
from psal.io.pictures import open_picture

ORIENTATION, MAKE, EXPOSURE, PIXEL_WIDTH, PIXEL_HEIGHT = 274, 271, 33434, 40962, 40963
EXIF_FOLDER, GPS_FOLDER, INTEROP_FOLDER = 34665, 34853, 40965


def camera_exif(orientation: int) -> bytes:
    exif = Image.Exif()
    exif[MAKE] = "A camera"
    exif[ORIENTATION] = orientation
    exif.get_ifd(EXIF_FOLDER).update({EXPOSURE: 0.25, PIXEL_WIDTH: WIDTH, PIXEL_HEIGHT: HEIGHT})
    exif.get_ifd(EXIF_FOLDER)[INTEROP_FOLDER] = {1: "R98"}
    exif.get_ifd(GPS_FOLDER).update({1: "N", 2: (47.0, 22.0, 8.5)})
    return exif.tobytes()


def read_exif(path: Path) -> Image.Exif:
    return Image.open(io.BytesIO(path.read_bytes())).getexif()


@pytest.mark.parametrize("suffix", [".png", ".tif", ".webp", ".bmp", ".jpg"])
@pytest.mark.parametrize("channels", [None, 2, 3, 4])
def test_8_bit_files_keep_pixels_profile_and_exif(suffix: str, channels: int | None, tmp_path: Path) -> None:
    if channels in (2, 4) and suffix in (".bmp", ".jpg"):
        pytest.skip("the format has no alpha")
    pixels = noise(channels)
    icc_profile = SRGB if channels in (3, 4) else None
    path = tmp_path / f"photo{suffix}"
    Photo(pixels, Metadata(camera_exif(1), icc_profile, (300.0, 300.0))).save(path)
    again = Photo.open(path)
    if suffix == ".webp" and channels in (None, 2):  # WebP has no grey
        pixels = np.asarray(Image.fromarray(pixels).convert("RGB" if channels is None else "RGBA"))
    if suffix == ".jpg":
        assert np.abs(again.pixels.astype(int) - pixels).mean() < 3
    else:
        np.testing.assert_array_equal(again.pixels, pixels)
    if suffix != ".bmp":
        assert again.metadata.icc_profile == icc_profile
        assert read_exif(path)[MAKE] == "A camera"
        assert read_exif(path).get_ifd(EXIF_FOLDER)[EXPOSURE] == 0.25
    if suffix != ".webp":
        assert again.metadata.dpi == pytest.approx((300, 300), rel=1e-3)


@pytest.mark.parametrize("suffix", [".png", ".tif"])
@pytest.mark.parametrize("channels", [None, 2, 3, 4])
def test_16_bit_files_keep_pixels_and_profile(suffix: str, channels: int | None, tmp_path: Path) -> None:
    pixels = noise(channels, np.uint16)
    path = tmp_path / f"photo{suffix}"
    icc_profile = SRGB if channels in (3, 4) else None
    Photo(pixels, Metadata(camera_exif(1), icc_profile, (300.0, 300.0))).save(path)
    again = Photo.open(path)
    if suffix == ".tif" and channels == 2:
        pixels = pixels[..., [0, 0, 0, 1]]
    np.testing.assert_array_equal(again.pixels, pixels)
    assert again.pixels.dtype == np.uint16
    assert again.metadata.icc_profile == icc_profile
    assert again.metadata.dpi == pytest.approx((300, 300), rel=1e-3)
    exif = read_exif(path)
    assert exif[MAKE] == "A camera"
    assert exif.get_ifd(EXIF_FOLDER)[EXPOSURE] == 0.25
    assert exif.get_ifd(INTEROP_FOLDER) == {1: "R98"}
    assert exif.get_ifd(GPS_FOLDER) == {1: "N", 2: (47.0, 22.0, 8.5)}


@pytest.mark.parametrize("layout", ["planar", "big-endian", "tiled", "lzw"])
def test_16_bit_tiffs_of_other_programs_are_read(layout: str, tmp_path: Path) -> None:
    pixels = noise(3, np.uint16)
    options: dict[str, dict[str, Any]] = {
        "planar": {"planarconfig": "separate"},
        "big-endian": {"byteorder": ">"},
        "tiled": {"tile": (16, 16)},
        "lzw": {"compression": "lzw", "predictor": True},
    }
    stored = np.moveaxis(pixels, 2, 0) if layout == "planar" else pixels
    tifffile.imwrite(tmp_path / "photo.tif", stored, photometric="rgb", **options[layout])
    np.testing.assert_array_equal(Photo.open(tmp_path / "photo.tif").pixels, pixels)


def test_a_16_bit_tiff_of_unknown_channels_is_refused(tmp_path: Path) -> None:
    tifffile.imwrite(tmp_path / "photo.tif", noise(4, np.uint16), photometric="separated")
    with pytest.raises(ValueError, match=r"photo\.tif is a 16-bit TIFF of another kind .*: convert it to RGB"):
        Photo.open(tmp_path / "photo.tif")


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "uint32", "int16"])
@pytest.mark.parametrize("channels", [None, 3])
def test_a_tiff_of_other_numbers_is_not_called_damaged(channels: int | None, dtype: str, tmp_path: Path) -> None:
    path = tmp_path / "photo.tif"
    tifffile.imwrite(path, noise(channels).astype(dtype), photometric="minisblack" if channels is None else "rgb")
    kind = "int32" if dtype == "uint32" and channels is None else dtype  # as Pillow opens it
    if dtype == "int16" and channels is None:
        words = r"is a 16-bit TIFF of another kind"
    else:
        words = rf"has {kind} pixels: only 8 and 16 bits per channel can be used, so convert it"
    with pytest.raises(ValueError, match=rf"photo\.tif {words}"):
        Photo.open(path)


def test_a_transparent_colour_becomes_alpha(tmp_path: Path) -> None:
    pixels = noise()
    Image.fromarray(pixels).save(tmp_path / "photo.png", transparency=tuple(int(x) for x in pixels[3, 4]))
    again = Photo.open(tmp_path / "photo.png").pixels
    np.testing.assert_array_equal(again[..., :3], pixels)
    assert (again[..., 3] == 0).sum() == 1
    assert again[3, 4, 3] == 0


@pytest.mark.parametrize("deep", [False, True])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_files_are_turned_upright(orientation: int, deep: bool, tmp_path: Path) -> None:
    pixels = noise()
    image = Image.fromarray(pixels)
    image.getexif()[ORIENTATION] = orientation
    expected = np.asarray(ImageOps.exif_transpose(image))
    path = tmp_path / "photo.png"
    stored = pixels.astype(np.uint16) * 257 if deep else pixels
    Photo(stored, Metadata(camera_exif(orientation))).save(path)
    photo = Photo.open(path)
    np.testing.assert_array_equal(photo.pixels // 257 if deep else photo.pixels, expected)
    photo.save(path)
    assert read_exif(path)[ORIENTATION] == 1
    details = read_exif(path).get_ifd(EXIF_FOLDER)
    assert (details[PIXEL_HEIGHT], details[PIXEL_WIDTH]) == expected.shape[:2]
    np.testing.assert_array_equal(Photo.open(path).pixels, photo.pixels)


def test_the_thumbnail_of_the_old_picture_is_left_out(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[MAKE] = "A camera"
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
    photo = Photo.open(tmp_path / "photo.jpg")
    photo.save(tmp_path / "out.jpg")
    assert marker not in (tmp_path / "out.jpg").read_bytes()
    assert read_exif(tmp_path / "out.jpg")[MAKE] == "A camera"


def test_a_grey_profile_does_not_go_with_colours(tmp_path: Path) -> None:
    profile = SRGB[:16] + b"GRAY" + SRGB[20:]
    for channels, kept in ((None, profile), (3, None)):
        Photo(noise(channels), Metadata(icc_profile=profile)).save(tmp_path / "photo.png")
        assert Photo.open(tmp_path / "photo.png").metadata.icc_profile == kept


def test_jpeg_keeps_the_colour_of_every_pixel(tmp_path: Path) -> None:
    Photo(noise()).save(tmp_path / "photo.jpg")
    with Image.open(tmp_path / "photo.jpg") as image:
        assert [layer[1:3] for layer in image.layer] == [(1, 1)] * 3  # type: ignore[attr-defined]


def test_a_cameras_photo_with_previews_is_read(tmp_path: Path) -> None:
    pixels = np.full((HEIGHT, WIDTH, 3), 90, np.uint8)
    preview = Image.new("RGB", (5, 4))
    Image.fromarray(pixels).save(tmp_path / "photo.jpg", "MPO", save_all=True, append_images=[preview])
    np.testing.assert_array_equal(Photo.open(tmp_path / "photo.jpg").pixels, pixels)


@pytest.mark.parametrize("suffix", [".gif", ".png", ".webp", ".tif"])
def test_files_with_frames_are_refused(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"film{suffix}"
    Image.fromarray(noise()).save(path, save_all=True, append_images=[Image.fromarray(noise()[::-1])])
    with pytest.raises(ValueError, match=rf"film\{suffix} has 2 frames: save the one you want"):
        open_picture(path)


def encoded(kind: str) -> bytes:
    if kind == "PNG 16":
        return bytes(imagecodecs.png_encode(noise(3, np.uint16)))
    out = io.BytesIO()
    if kind == "TIFF 16":
        tifffile.imwrite(out, noise(3, np.uint16), photometric="rgb")
    else:
        Image.fromarray(noise(size=(40, 50))).save(out, kind)
    return out.getvalue()


@pytest.mark.parametrize("share", [0, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("kind", ["PNG", "JPEG", "TIFF", "WEBP", "BMP", "PNG 16", "TIFF 16"])
def test_a_file_that_breaks_off_is_refused_by_name(kind: str, share: float, tmp_path: Path) -> None:
    path = tmp_path / "broken.img"
    content = encoded(kind)
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(ValueError, match=r"^[^\n]*broken\.img is (empty|damaged)[^\n]*: g[^\n]*$"):
        open_picture(path)


def test_missing_files_folders_and_texts_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"nowhere\.png: there is no such file"):
        open_picture(tmp_path / "nowhere.png")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        open_picture(tmp_path)
    (tmp_path / "letter.png").write_text("Dear all")
    with pytest.raises(ValueError, match=r"letter\.png is damaged, or not a picture"):
        open_picture(str(tmp_path / "letter.png"))


def huge_png(width: int, height: int) -> bytes:
    """A white bilevel PNG, small as a file."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    rows = zlib.compress((b"\0" + b"\xff" * ((width + 7) // 8)) * height, 1)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def test_a_picture_beyond_pillows_limit_is_read_and_one_beyond_ours_refused(tmp_path: Path) -> None:
    limit = Image.MAX_IMAGE_PIXELS
    assert limit is not None
    width = 20_000
    (tmp_path / "large.png").write_bytes(huge_png(width, 2 * limit // width + 1))
    assert Photo.open(tmp_path / "large.png").pixels.shape == (2 * limit // width + 1, width)
    (tmp_path / "huge.png").write_bytes(huge_png(width, MAX_PIXELS // width + 1))
    with pytest.raises(ValueError, match=r"huge\.png has 500 megapixels, but at most 500"):
        Photo.open(tmp_path / "huge.png")
    assert limit == Image.MAX_IMAGE_PIXELS


@pytest.mark.parametrize(
    ("name", "channels", "words"),
    [("out.jpg", 4, r"out\.jpg cannot be written: JPEG has no alpha"), ("out.gif", 3, "let its name end in .png")],
)
def test_what_a_format_cannot_hold_is_refused(name: str, channels: int, words: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=words):
        Photo(noise(channels)).save(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_16_bit_goes_to_jpeg_as_8_bit(tmp_path: Path) -> None:
    Photo(np.full((8, 9, 3), 200 * 257, np.uint16)).save(tmp_path / "out.jpg")
    assert (Photo.open(tmp_path / "out.jpg").pixels == 200).all()


def test_a_file_goes_through_a_link_and_keeps_its_permissions(tmp_path: Path) -> None:
    target = tmp_path / "target.png"
    target.write_bytes(b"old")
    target.chmod(0o640)
    (tmp_path / "link.png").symlink_to(target)
    Photo(noise()).save(tmp_path / "link.png")
    assert (tmp_path / "link.png").is_symlink()
    assert target.stat().st_mode & 0o777 == 0o640
    np.testing.assert_array_equal(Photo.open(target).pixels, noise())
