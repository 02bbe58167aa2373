import io
import struct
import zlib
from pathlib import Path
from typing import Any

import imagecodecs
import numpy as np
import pytest
import tifffile
import torch
from numpy.typing import NDArray
from PIL import Image, ImageCms, ImageOps

from psal.editing.files import (
    MOST_PIXELS,
    PictureFile,
    read_picture_file,
    write_picture_file,
)
from psal.editing.pictures import open_mask, open_picture

HEIGHT, WIDTH = 11, 17
ORIENTATION, MAKE, EXIF_FOLDER, EXPOSURE, PIXEL_WIDTH, PIXEL_HEIGHT = 274, 271, 34665, 33434, 40962, 40963
SRGB = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()


def noise(channels: int | None = 3, dtype: type = np.uint8, size: tuple[int, int] = (HEIGHT, WIDTH)) -> NDArray[Any]:
    """Random pixels ``(H, W)`` or ``(H, W, C)`` that use the whole range."""
    shape = size if channels is None else (*size, channels)
    pixels = np.random.default_rng(0).integers(0, np.iinfo(dtype).max, shape, dtype=dtype, endpoint=True)
    pixels.flat[:2] = 0, np.iinfo(dtype).max
    return pixels


def camera_exif(orientation: int) -> bytes:
    exif = Image.Exif()
    exif[MAKE] = "A camera"
    exif[ORIENTATION] = orientation
    exif.get_ifd(EXIF_FOLDER).update({EXPOSURE: 0.25, PIXEL_WIDTH: WIDTH, PIXEL_HEIGHT: HEIGHT})
    return exif.tobytes()


def read_exif(path: Path) -> Image.Exif:
    return Image.open(io.BytesIO(path.read_bytes())).getexif()


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, ">u2"])
@pytest.mark.parametrize("channels", [None, 1, 2, 3, 4])
def test_arrays_come_back_bit_for_bit(channels: int | None, dtype: Any) -> None:
    pixels = noise(channels, np.uint8 if dtype == np.uint8 else np.uint16).astype(dtype)
    picture = open_picture(pixels)
    assert picture.color.shape == (1 if channels in (None, 1, 2) else 3, HEIGHT, WIDTH)
    assert picture.color.dtype == torch.float32
    assert (picture.alpha is not None) == (channels in (2, 4))
    back = picture.give_back(picture.color)
    assert back.dtype == pixels.dtype
    np.testing.assert_array_equal(back, pixels)


def test_every_16_bit_value_comes_back() -> None:
    pixels = np.arange(65536, dtype=np.uint16).reshape(256, 256)
    np.testing.assert_array_equal(open_picture(pixels).give_back(open_picture(pixels).color), pixels)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.uint16, torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("shape", [(1, 11, 17), (2, 11, 17), (3, 11, 17), (1, 4, 11, 17)])
def test_tensors_come_back_bit_for_bit(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    tensor = torch.rand(shape).to(dtype) if dtype.is_floating_point else torch.randint(0, 256, shape).to(dtype)
    picture = open_picture(tensor)
    back = picture.give_back(picture.color)
    assert (back.dtype, back.shape) == (dtype, shape)
    assert back.equal(tensor)


@pytest.mark.parametrize("mode", ["L", "LA", "RGB", "RGBA", "I;16"])
def test_pillow_images_come_back_bit_for_bit(mode: str) -> None:
    channels = {"L": None, "LA": 2, "RGB": 3, "RGBA": 4, "I;16": None}[mode]
    pixels = noise(channels, np.uint16 if mode == "I;16" else np.uint8)
    image = Image.fromarray(pixels)
    image.info["icc_profile"] = SRGB
    back = open_picture(image).give_back(open_picture(image).color)
    assert (back.mode, back.size, back.info["icc_profile"]) == (mode, image.size, SRGB)
    np.testing.assert_array_equal(np.asarray(back), pixels)


def test_a_bilevel_image_is_taken_as_grey() -> None:
    pixels = noise(None) > 127
    back = open_picture(Image.fromarray(pixels)).color
    assert back.equal(torch.from_numpy(pixels)[None].float())


@pytest.mark.parametrize("transparent", [False, True])
def test_a_palette_becomes_rgb_or_rgba(transparent: bool) -> None:
    image = Image.fromarray(noise()).quantize(16)
    if transparent:
        image.info["transparency"] = 3
    picture = open_picture(image)
    back = picture.give_back(picture.color)
    assert back.mode == ("RGBA" if transparent else "RGB")
    np.testing.assert_array_equal(np.asarray(back), np.asarray(image.convert(back.mode)))
    if transparent:
        assert picture.alpha is not None
        assert picture.alpha.eq(0).equal(torch.from_numpy(np.asarray(image) == 3)[None])


def test_other_channels_and_sizes_go_back_too() -> None:
    grey = open_picture(noise(2, np.uint16))
    enlarged = grey.give_back(torch.rand(3, 2 * HEIGHT, 2 * WIDTH))
    assert (enlarged.shape, enlarged.dtype) == ((2 * HEIGHT, 2 * WIDTH, 4), np.uint16)
    opaque = open_picture(torch.ones(4, HEIGHT, WIDTH)).give_back(torch.rand(1, 3, 40))
    assert opaque.shape == (2, 3, 40)
    assert opaque[1].allclose(torch.ones(3, 40))


def test_given_alpha_takes_the_place_of_the_pictures_own() -> None:
    picture = open_picture(torch.ones(4, HEIGHT, WIDTH))
    back = picture.give_back(picture.color, torch.zeros(1, HEIGHT, WIDTH))
    assert back[3].eq(0).all()
    assert back[:3].eq(1).all()


def test_values_beyond_the_range_are_clamped_when_given_back() -> None:
    picture = open_picture(np.zeros((2, 2), np.uint8))
    np.testing.assert_array_equal(
        picture.give_back(torch.tensor([[[-0.1, 0.0], [1.0, 1.1]]])), np.array([[0, 0], [255, 255]], np.uint8)
    )


def test_computing_in_place_leaves_the_picture_given_alone() -> None:
    tensor = torch.ones(3, 4, 5)
    array = np.ones((4, 5))
    open_picture(tensor).color.zero_()
    open_picture(array).color.zero_()
    assert tensor.eq(1).all()
    assert (array == 1).all()


def test_16_bit_colour_as_a_pillow_image_warns(tmp_path: Path) -> None:
    write_picture_file(tmp_path / "deep.png", noise(3, np.uint16))
    picture = open_picture(tmp_path / "deep.png")
    with pytest.warns(UserWarning, match="16-bit"):
        assert picture.give_back(picture.color).mode == "RGB"


@pytest.mark.parametrize(
    ("image", "error", "words"),
    [
        (np.zeros((3, 4, 5), np.uint8), ValueError, r"photo must be an array .* got \(3, 4, 5\)"),
        (np.zeros((4,), np.uint8), ValueError, "photo must be an array"),
        (np.zeros((0, 4), np.uint8), ValueError, "at least one pixel"),
        (np.zeros((4, 4), np.int64), TypeError, "photo must be uint8, uint16 or float, got int64"),
        (np.full((4, 4), 255.0), ValueError, r"0\.\.1, got 255 to 255"),
        (np.full((4, 4), np.nan), ValueError, "got nan"),
        (torch.zeros(2, 3, 4, 4), ValueError, "photo must be a tensor"),
        (torch.zeros(4, 4), ValueError, "photo must be a tensor"),
        (torch.zeros(3, 4, 4, dtype=torch.int32), TypeError, "got torch.int32"),
        (torch.full((1, 2, 2), -0.5), ValueError, "got -0.5"),
        (Image.new("CMYK", (4, 4)), ValueError, "photo is CMYK, which cannot be used: convert it to RGB"),
        (Image.new("F", (4, 4)), ValueError, "convert it to RGB"),
        ([[1, 2]], TypeError, "photo must be a path, .* got list"),
        (None, TypeError, "got NoneType"),
    ],
)
def test_what_is_no_picture_is_refused_by_name(image: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        open_picture(image, "photo")


@pytest.mark.parametrize("kind", ["bool", "uint8", "ones", "float", "rgb", "tensor", "bool tensor", "pillow", "file"])
def test_masks_of_every_kind_agree(kind: str, tmp_path: Path) -> None:
    hole = noise(None) > 127
    white = np.where(hole, 255, 0).astype(np.uint8)
    Image.fromarray(white).save(tmp_path / "mask.png")
    masks: dict[str, Any] = {
        "bool": hole,
        "uint8": np.where(hole, 200, 50).astype(np.uint8),
        "ones": hole.astype(np.uint8),
        "float": hole.astype(np.float64),
        "rgb": white[..., None] * np.array([1, 0, 0], np.uint8),
        "tensor": torch.from_numpy(hole)[None, None].float(),
        "bool tensor": torch.from_numpy(hole),
        "pillow": Image.fromarray(hole),
        "file": tmp_path / "mask.png",
    }
    assert open_mask(masks[kind], (HEIGHT, WIDTH)).equal(torch.from_numpy(hole))


def test_what_a_masks_alpha_hides_is_no_hole() -> None:
    mask = np.full((HEIGHT, WIDTH, 4), 255, np.uint8)
    mask[:, 5:, 3] = 0
    assert open_mask(mask, (HEIGHT, WIDTH)).sum() == 5 * HEIGHT


def test_a_mask_of_another_size_is_refused() -> None:
    with pytest.raises(ValueError, match="hole is 17 × 11 pixels and the picture 11 × 17"):
        open_mask(noise(None), (WIDTH, HEIGHT), "hole")


@pytest.mark.parametrize("suffix", [".png", ".tif", ".webp", ".bmp", ".jpg"])
@pytest.mark.parametrize("channels", [None, 2, 3, 4])
def test_8_bit_files_keep_pixels_profile_and_exif(suffix: str, channels: int | None, tmp_path: Path) -> None:
    if channels in (2, 4) and suffix in (".bmp", ".jpg"):
        pytest.skip("the format has no alpha")
    pixels = noise(channels)
    icc_profile = SRGB if channels in (3, 4) else None
    path = tmp_path / f"photo{suffix}"
    write_picture_file(path, pixels, PictureFile(pixels, camera_exif(1), icc_profile, (300.0, 300.0)))
    again = read_picture_file(path)
    if suffix == ".webp" and channels in (None, 2):  # WebP has no grey
        pixels = np.asarray(Image.fromarray(pixels).convert("RGB" if channels is None else "RGBA"))
    if suffix == ".jpg":
        assert np.abs(again.pixels.astype(int) - pixels).mean() < 3
    else:
        np.testing.assert_array_equal(again.pixels, pixels)
    if suffix != ".bmp":
        assert again.icc_profile == icc_profile
        assert read_exif(path)[MAKE] == "A camera"
        assert read_exif(path).get_ifd(EXIF_FOLDER)[EXPOSURE] == 0.25
    if suffix != ".webp":
        assert again.dpi == pytest.approx((300, 300), rel=1e-3)


@pytest.mark.parametrize("suffix", [".png", ".tif"])
@pytest.mark.parametrize("channels", [None, 2, 3, 4])
def test_16_bit_files_keep_pixels_and_profile(suffix: str, channels: int | None, tmp_path: Path) -> None:
    pixels = noise(channels, np.uint16)
    path = tmp_path / f"photo{suffix}"
    icc_profile = SRGB if channels in (3, 4) else None
    write_picture_file(path, pixels, PictureFile(pixels, camera_exif(1), icc_profile, (300.0, 300.0)))
    again = read_picture_file(path)
    if suffix == ".tif" and channels == 2:
        pixels = pixels[..., [0, 0, 0, 1]]
    np.testing.assert_array_equal(again.pixels, pixels)
    assert again.pixels.dtype == np.uint16
    assert again.icc_profile == icc_profile
    assert again.dpi == pytest.approx((300, 300), rel=1e-3)
    assert read_exif(path)[MAKE] == "A camera"
    if suffix == ".png":
        assert read_exif(path).get_ifd(EXIF_FOLDER)[EXPOSURE] == 0.25


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
    np.testing.assert_array_equal(read_picture_file(tmp_path / "photo.tif").pixels, pixels)


def test_a_16_bit_tiff_of_unknown_channels_is_refused(tmp_path: Path) -> None:
    tifffile.imwrite(tmp_path / "photo.tif", noise(4, np.uint16), photometric="separated")
    with pytest.raises(ValueError, match=r"photo\.tif is a 16-bit TIFF of another kind .*: convert it to RGB"):
        read_picture_file(tmp_path / "photo.tif")


def test_a_transparent_colour_becomes_alpha(tmp_path: Path) -> None:
    pixels = noise()
    Image.fromarray(pixels).save(tmp_path / "photo.png", transparency=tuple(int(x) for x in pixels[3, 4]))
    again = read_picture_file(tmp_path / "photo.png").pixels
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
    write_picture_file(path, stored, PictureFile(stored, camera_exif(orientation)))
    photo = read_picture_file(path)
    np.testing.assert_array_equal(photo.pixels // 257 if deep else photo.pixels, expected)
    write_picture_file(path, photo.pixels, photo)
    assert read_exif(path)[ORIENTATION] == 1
    details = read_exif(path).get_ifd(EXIF_FOLDER)
    assert (details[PIXEL_HEIGHT], details[PIXEL_WIDTH]) == expected.shape[:2]
    np.testing.assert_array_equal(read_picture_file(path).pixels, photo.pixels)


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
    photo = read_picture_file(tmp_path / "photo.jpg")
    write_picture_file(tmp_path / "out.jpg", photo.pixels, photo)
    assert marker not in (tmp_path / "out.jpg").read_bytes()
    assert read_exif(tmp_path / "out.jpg")[MAKE] == "A camera"


def test_a_grey_profile_does_not_go_with_colours(tmp_path: Path) -> None:
    profile = SRGB[:16] + b"GRAY" + SRGB[20:]
    for channels, kept in ((None, profile), (3, None)):
        write_picture_file(tmp_path / "photo.png", noise(channels), PictureFile(noise(None), icc_profile=profile))
        assert read_picture_file(tmp_path / "photo.png").icc_profile == kept


def test_jpeg_keeps_the_colour_of_every_pixel(tmp_path: Path) -> None:
    write_picture_file(tmp_path / "photo.jpg", noise())
    with Image.open(tmp_path / "photo.jpg") as image:
        assert [layer[1:3] for layer in image.layer] == [(1, 1)] * 3  # type: ignore[attr-defined]


def test_a_cameras_photo_with_previews_is_read(tmp_path: Path) -> None:
    pixels = np.full((HEIGHT, WIDTH, 3), 90, np.uint8)
    preview = Image.new("RGB", (5, 4))
    Image.fromarray(pixels).save(tmp_path / "photo.jpg", "MPO", save_all=True, append_images=[preview])
    np.testing.assert_array_equal(read_picture_file(tmp_path / "photo.jpg").pixels, pixels)


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
    assert read_picture_file(tmp_path / "large.png").pixels.shape == (2 * limit // width + 1, width)
    (tmp_path / "huge.png").write_bytes(huge_png(width, MOST_PIXELS // width + 1))
    with pytest.raises(ValueError, match=r"huge\.png has 500 megapixels, of which at most 500"):
        read_picture_file(tmp_path / "huge.png")
    assert limit == Image.MAX_IMAGE_PIXELS


@pytest.mark.parametrize(
    ("name", "channels", "words"),
    [("out.jpg", 4, r"out\.jpg cannot be written: JPEG has no alpha"), ("out.gif", 3, "let its name end in .png")],
)
def test_what_a_format_cannot_hold_is_refused(name: str, channels: int, words: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=words):
        write_picture_file(tmp_path / name, noise(channels))
    assert not list(tmp_path.iterdir())


def test_16_bit_goes_to_jpeg_as_8_bit(tmp_path: Path) -> None:
    write_picture_file(tmp_path / "out.jpg", np.full((8, 9, 3), 200 * 257, np.uint16))
    assert (read_picture_file(tmp_path / "out.jpg").pixels == 200).all()


def test_a_file_goes_through_a_link_and_keeps_its_permissions(tmp_path: Path) -> None:
    target = tmp_path / "target.png"
    target.write_bytes(b"old")
    target.chmod(0o640)
    (tmp_path / "link.png").symlink_to(target)
    write_picture_file(tmp_path / "link.png", noise())
    assert (tmp_path / "link.png").is_symlink()
    assert target.stat().st_mode & 0o777 == 0o640
    np.testing.assert_array_equal(read_picture_file(target).pixels, noise())
