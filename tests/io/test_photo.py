import io
import struct
import zlib
from pathlib import Path
from typing import Any

import imagecodecs
import numpy as np
import pytest
import tifffile
from PIL import Image
from support.pixels import HEIGHT, SRGB, WIDTH, noise

from psal.io.metadata import Metadata
from psal.io.photo import MAX_NOTEBOOK_SIDE, MAX_PIXELS, Photo


@pytest.mark.parametrize("suffix", [".png", ".tif", ".webp", ".bmp", ".jpg"])
@pytest.mark.parametrize("channels", [None, 2, 3, 4])
def test_8_bit_files_keep_their_pixels(suffix: str, channels: int | None, tmp_path: Path) -> None:
    if channels in (2, 4) and suffix in (".bmp", ".jpg"):
        pytest.skip("the format has no alpha")
    pixels = noise(channels)
    Photo(pixels).save(tmp_path / f"photo{suffix}")
    again = Photo.open(tmp_path / f"photo{suffix}")
    if suffix == ".webp" and channels in (None, 2):  # WebP has no gray
        pixels = np.asarray(Image.fromarray(pixels).convert("RGB" if channels is None else "RGBA"))
    if suffix == ".jpg":
        assert np.abs(again.pixels.astype(int) - pixels).mean() < 3
    else:
        np.testing.assert_array_equal(again.pixels, pixels)
    assert again.depth == 8


@pytest.mark.parametrize("suffix", [".png", ".tif"])
@pytest.mark.parametrize("channels", [None, 2, 3, 4])
def test_16_bit_files_keep_their_pixels(suffix: str, channels: int | None, tmp_path: Path) -> None:
    pixels = noise(channels, np.uint16)
    Photo(pixels).save(tmp_path / f"photo{suffix}")
    again = Photo.open(tmp_path / f"photo{suffix}")
    if suffix == ".tif" and channels == 2:
        pixels = pixels[..., [0, 0, 0, 1]]
    np.testing.assert_array_equal(again.pixels, pixels)
    assert again.depth == 16


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize("channels", [None, 3, 4])
@pytest.mark.parametrize("size", [(1, 1), (700, 900)], ids=["one strip", "several strips"])
def test_other_libraries_read_our_tiffs(
    size: tuple[int, int], channels: int | None, dtype: type, tmp_path: Path
) -> None:
    pixels = noise(channels, dtype, size)
    Photo(pixels).save(tmp_path / "photo.tif")
    np.testing.assert_array_equal(tifffile.imread(tmp_path / "photo.tif"), pixels)


@pytest.mark.parametrize("layout", ["planar", "big-endian", "tiled", "lzw", "zstd"])
def test_16_bit_tiffs_of_other_programs_are_read(layout: str, tmp_path: Path) -> None:
    pixels = noise(3, np.uint16)
    options: dict[str, dict[str, Any]] = {
        "planar": {"planarconfig": "separate"},
        "big-endian": {"byteorder": ">"},
        "tiled": {"tile": (16, 16)},
        "lzw": {"compression": "lzw", "predictor": True},
        "zstd": {"compression": "zstd"},
    }
    stored = np.moveaxis(pixels, 2, 0) if layout == "planar" else pixels
    tifffile.imwrite(tmp_path / "photo.tif", stored, photometric="rgb", **options[layout])
    np.testing.assert_array_equal(Photo.open(tmp_path / "photo.tif").pixels, pixels)


def test_a_16_bit_tiff_with_unknown_channels_is_refused(tmp_path: Path) -> None:
    tifffile.imwrite(tmp_path / "photo.tif", noise(4, np.uint16), photometric="separated")
    with pytest.raises(ValueError, match=r"photo\.tif is a 16-bit TIFF, but not gray .*: convert it to RGB"):
        Photo.open(tmp_path / "photo.tif")


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "uint32", "int16"])
@pytest.mark.parametrize("channels", [None, 3])
def test_a_tiff_with_another_dtype_is_refused_but_not_called_damaged(
    channels: int | None, dtype: str, tmp_path: Path
) -> None:
    path = tmp_path / "photo.tif"
    tifffile.imwrite(path, noise(channels).astype(dtype), photometric="minisblack" if channels is None else "rgb")
    kind = "int32" if dtype == "uint32" and channels is None else dtype  # as Pillow opens it
    if dtype == "int16" and channels is None:
        words = r"is a 16-bit TIFF, but not gray"
    else:
        words = rf"has {kind} pixels: only 8 and 16 bits per channel can be used, so convert it"
    with pytest.raises(ValueError, match=rf"photo\.tif {words}"):
        Photo.open(path)


def test_a_transparent_color_becomes_alpha(tmp_path: Path) -> None:
    pixels = noise()
    Image.fromarray(pixels).save(tmp_path / "photo.png", transparency=tuple(int(x) for x in pixels[3, 4]))
    again = Photo.open(tmp_path / "photo.png").pixels
    np.testing.assert_array_equal(again[..., :3], pixels)
    assert (again[..., 3] == 0).sum() == 1
    assert again[3, 4, 3] == 0


def test_jpeg_has_no_chroma_subsampling(tmp_path: Path) -> None:
    Photo(noise()).save(tmp_path / "photo.jpg")
    with Image.open(tmp_path / "photo.jpg") as image:
        assert [layer[1:3] for layer in image.layer] == [(1, 1)] * 3  # type: ignore[attr-defined]


def test_the_photo_in_an_mpo_is_read_without_its_previews(tmp_path: Path) -> None:
    pixels = np.full((HEIGHT, WIDTH, 3), 90, np.uint8)
    preview = Image.new("RGB", (5, 4))
    Image.fromarray(pixels).save(tmp_path / "photo.jpg", "MPO", save_all=True, append_images=[preview])
    photo = Photo.open(tmp_path / "photo.jpg")
    np.testing.assert_array_equal(photo.pixels, pixels)
    assert photo.format == "JPEG"


@pytest.mark.parametrize("suffix", [".gif", ".png", ".webp", ".tif"])
def test_files_with_frames_are_refused(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"film{suffix}"
    Image.fromarray(noise()).save(path, save_all=True, append_images=[Image.fromarray(noise()[::-1])])
    with pytest.raises(ValueError, match=rf"film\{suffix} has 2 frames: save the one you want"):
        Photo.open(path)


def encoded(kind: str) -> bytes:
    if kind == "PNG 16":
        return bytes(imagecodecs.png_encode(noise(3, np.uint16)))
    out = io.BytesIO()
    if kind == "TIFF 16":
        tifffile.imwrite(out, noise(3, np.uint16), photometric="rgb")
    else:
        Image.fromarray(noise(size=(40, 50))).save(out, kind)
    return out.getvalue()


@pytest.mark.parametrize("fraction", [0, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("kind", ["PNG", "JPEG", "TIFF", "WEBP", "BMP", "PNG 16", "TIFF 16"])
def test_a_truncated_file_is_refused_by_name(kind: str, fraction: float, tmp_path: Path) -> None:
    path = tmp_path / "broken.img"
    content = encoded(kind)
    path.write_bytes(content[: int(fraction * len(content))])
    with pytest.raises(ValueError, match=r"^[^\n]*broken\.img is (empty|damaged)[^\n]*: g[^\n]*$"):
        Photo.open(path)


def test_missing_files_folders_and_texts_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"nowhere\.png: there is no such file"):
        Photo.open(tmp_path / "nowhere.png")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        Photo.open(tmp_path)
    (tmp_path / "letter.png").write_text("Dear all")
    with pytest.raises(ValueError, match=r"letter\.png is damaged, or not a picture"):
        Photo.open(str(tmp_path / "letter.png"))


def white_png(width: int, height: int) -> bytes:
    """A bilevel PNG, small as a file."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    rows = zlib.compress((b"\0" + b"\xff" * ((width + 7) // 8)) * height, 1)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def test_our_limit_on_pixels_replaces_that_of_pillow(tmp_path: Path) -> None:
    limit = Image.MAX_IMAGE_PIXELS
    assert limit is not None
    width = 20_000
    (tmp_path / "large.png").write_bytes(white_png(width, 2 * limit // width + 1))
    assert Photo.open(tmp_path / "large.png").pixels.shape == (2 * limit // width + 1, width)
    (tmp_path / "huge.png").write_bytes(white_png(width, MAX_PIXELS // width + 1))
    with pytest.raises(ValueError, match=r"huge\.png has 500 megapixels, but at most 500"):
        Photo.open(tmp_path / "huge.png")
    assert limit == Image.MAX_IMAGE_PIXELS


def test_too_many_pixels_are_refused_before_they_are_decoded(tmp_path: Path) -> None:
    content = white_png(30, 40)
    (tmp_path / "photo.png").write_bytes(content[:45])  # decoding would fail
    with pytest.raises(ValueError, match=r"photo\.png has 0 megapixels, but at most 0"):
        Photo.open(tmp_path / "photo.png", max_pixels=1199)


@pytest.mark.parametrize(
    ("name", "channels", "words"),
    [("out.jpg", 4, r"out\.jpg cannot be written: JPEG has no alpha"), ("out.gif", 3, "let its name end in .png")],
)
def test_a_photo_that_the_format_cannot_hold_is_refused(name: str, channels: int, words: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=words):
        Photo(noise(channels)).save(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_a_side_too_long_for_the_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"out\.webp cannot be written: .*: let its name end in \.png"):
        Photo(np.zeros((1, 16384), np.uint8)).save(tmp_path / "out.webp")


def test_16_bits_become_8_in_jpeg(tmp_path: Path) -> None:
    Photo(np.full((8, 9, 3), 200 * 257, np.uint16)).save(tmp_path / "out.jpg")
    assert (Photo.open(tmp_path / "out.jpg").pixels == 200).all()


def test_saving_follows_links_and_keeps_permissions(tmp_path: Path) -> None:
    target = tmp_path / "target.png"
    target.write_bytes(b"old")
    target.chmod(0o640)
    (tmp_path / "link.png").symlink_to(target)
    Photo(noise()).save(tmp_path / "link.png")
    assert (tmp_path / "link.png").is_symlink()
    assert target.stat().st_mode & 0o777 == 0o640
    np.testing.assert_array_equal(Photo.open(target).pixels, noise())


@pytest.mark.parametrize(
    ("pixels", "error", "words"),
    [
        (np.zeros((4, 5), np.float32), TypeError, "uint8 or uint16, got float32"),
        ([[1, 2]], TypeError, "uint8 or uint16, got list"),
        (np.zeros((4, 5, 5), np.uint8), ValueError, r"got \(4, 5, 5\)"),
        (np.zeros(4, np.uint8), ValueError, r"got \(4,\)"),
        (np.zeros((0, 4), np.uint8), ValueError, r"got \(0, 4\)"),
    ],
)
def test_pixels_of_another_kind_are_refused(pixels: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        Photo(pixels)


def test_a_single_channel_is_gray() -> None:
    assert Photo(noise(1)).pixels.shape == (HEIGHT, WIDTH)


def test_width_height_and_depth_are_those_of_the_pixels() -> None:
    photo = Photo(noise(4, np.uint16))
    assert (photo.width, photo.height, photo.depth) == (WIDTH, HEIGHT, 16)


def test_other_pixels_keep_metadata_and_format() -> None:
    photo = Photo(noise(), Metadata(icc_profile=SRGB), "TIFF").with_pixels(noise(None, np.uint16))
    assert (photo.metadata.icc_profile, photo.format, photo.depth) == (SRGB, "TIFF", 16)


def test_numpy_takes_a_photo_as_an_array() -> None:
    photo = Photo(noise())
    assert np.asarray(photo) is photo.pixels
    assert np.array(photo) is not photo.pixels
    np.testing.assert_array_equal(np.asarray(photo, np.float32), noise().astype(np.float32))


@pytest.mark.parametrize(
    ("channels", "dtype", "mode"),
    [(None, np.uint8, "L"), (None, np.uint16, "I;16"), (3, np.uint16, "RGB"), (4, np.uint8, "RGBA")],
)
def test_conversion_to_pillow(channels: int | None, dtype: type, mode: str) -> None:
    image = Photo(noise(channels, dtype), Metadata(icc_profile=SRGB, dpi=(72.0, 72.0))).to_pillow()
    assert (image.mode, image.size) == (mode, (WIDTH, HEIGHT))
    assert image.info == {"icc_profile": SRGB, "dpi": (72.0, 72.0)}


@pytest.mark.parametrize("channels", [None, 2, 3, 4])
def test_notebooks_show_a_png_of_limited_size(channels: int | None) -> None:
    shown = Photo(noise(channels, np.uint16, (20, 2 * MAX_NOTEBOOK_SIDE)))._repr_png_()
    assert Image.open(io.BytesIO(shown)).size == (MAX_NOTEBOOK_SIDE, 10)


@pytest.mark.parametrize("suffix", [".png", ".jpg", ".tif"])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_pixels_are_read_only_and_the_callers_array_is_not(suffix: str, dtype: type, tmp_path: Path) -> None:
    pixels = noise(3, dtype)
    photo = Photo(pixels)
    with pytest.raises(ValueError, match="read-only"):
        photo.pixels[:] = 0
    pixels[:] = 0
    if suffix == ".jpg" and dtype is np.uint16:
        return  # JPEG has 8 bits
    photo.save(tmp_path / f"photo{suffix}")
    assert not Photo.open(tmp_path / f"photo{suffix}").pixels.flags.writeable
