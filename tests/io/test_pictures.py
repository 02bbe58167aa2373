from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from support.pixels import HEIGHT, SRGB, WIDTH, noise

from psal.io.metadata import Metadata
from psal.io.photo import Photo
from psal.io.pictures import open_picture


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, ">u2"])
@pytest.mark.parametrize("channels", [None, 1, 2, 3, 4])
def test_arrays_come_back_bit_for_bit(channels: int | None, dtype: Any) -> None:
    pixels = noise(channels, np.uint8 if dtype == np.uint8 else np.uint16).astype(dtype)
    picture = open_picture(pixels)
    assert picture.color.shape == (1 if channels in (None, 1, 2) else 3, HEIGHT, WIDTH)
    assert picture.color.dtype == torch.float32
    assert (picture.alpha is not None) == (channels in (2, 4))
    back = picture.restore(picture.color)
    assert back.dtype == pixels.dtype
    np.testing.assert_array_equal(back, pixels)


def test_every_16_bit_value_comes_back() -> None:
    pixels = np.arange(65536, dtype=np.uint16).reshape(256, 256)
    np.testing.assert_array_equal(open_picture(pixels).restore(open_picture(pixels).color), pixels)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.uint16, torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("shape", [(1, 11, 17), (2, 11, 17), (3, 11, 17), (1, 4, 11, 17)])
def test_tensors_come_back_bit_for_bit(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    tensor = torch.rand(shape).to(dtype) if dtype.is_floating_point else torch.randint(0, 256, shape).to(dtype)
    picture = open_picture(tensor)
    back = picture.restore(picture.color)
    assert (back.dtype, back.shape) == (dtype, shape)
    assert back.equal(tensor)


@pytest.mark.parametrize("mode", ["L", "LA", "RGB", "RGBA", "I;16"])
def test_pillow_images_come_back_bit_for_bit(mode: str) -> None:
    channels = {"L": None, "LA": 2, "RGB": 3, "RGBA": 4, "I;16": None}[mode]
    pixels = noise(channels, np.uint16 if mode == "I;16" else np.uint8)
    image = Image.fromarray(pixels)
    image.info["icc_profile"] = SRGB
    back = open_picture(image).restore(open_picture(image).color)
    assert (back.mode, back.size, back.info["icc_profile"]) == (mode, image.size, SRGB)
    np.testing.assert_array_equal(np.asarray(back), pixels)


def test_a_bilevel_image_becomes_gray() -> None:
    pixels = noise(None) > 127
    back = open_picture(Image.fromarray(pixels)).color
    assert back.equal(torch.from_numpy(pixels)[None].float())


@pytest.mark.parametrize("transparent", [False, True])
def test_a_palette_becomes_rgb_or_rgba(transparent: bool) -> None:
    image = Image.fromarray(noise()).quantize(16)
    if transparent:
        image.info["transparency"] = 3
    picture = open_picture(image)
    back = picture.restore(picture.color)
    assert back.mode == ("RGBA" if transparent else "RGB")
    np.testing.assert_array_equal(np.asarray(back), np.asarray(image.convert(back.mode)))
    if transparent:
        assert picture.alpha is not None
        assert picture.alpha.eq(0).equal(torch.from_numpy(np.asarray(image) == 3)[None])


def test_results_may_have_other_channels_and_sizes() -> None:
    gray = open_picture(noise(2, np.uint16))
    enlarged = gray.restore(torch.rand(3, 2 * HEIGHT, 2 * WIDTH))
    assert (enlarged.shape, enlarged.dtype) == ((2 * HEIGHT, 2 * WIDTH, 4), np.uint16)
    opaque = open_picture(torch.ones(4, HEIGHT, WIDTH)).restore(torch.rand(1, 3, 40))
    assert opaque.shape == (2, 3, 40)
    assert opaque[1].allclose(torch.ones(3, 40))


def test_a_given_alpha_replaces_that_of_the_picture() -> None:
    picture = open_picture(torch.ones(4, HEIGHT, WIDTH))
    back = picture.restore(picture.color, torch.zeros(1, HEIGHT, WIDTH))
    assert back[3].eq(0).all()
    assert back[:3].eq(1).all()


def test_values_out_of_range_are_clamped() -> None:
    picture = open_picture(np.zeros((2, 2), np.uint8))
    np.testing.assert_array_equal(
        picture.restore(torch.tensor([[[-0.1, 0.0], [1.0, 1.1]]])), np.array([[0, 0], [255, 255]], np.uint8)
    )


def test_changes_in_place_do_not_reach_the_input() -> None:
    tensor = torch.ones(3, 4, 5)
    array = np.ones((4, 5))
    open_picture(tensor).color.zero_()
    open_picture(array).color.zero_()
    assert tensor.eq(1).all()
    assert (array == 1).all()


def test_16_bit_color_as_a_pillow_image_warns() -> None:
    picture = open_picture(Image.fromarray(noise(None, np.uint16)))
    with pytest.warns(UserWarning, match="16-bit"):
        assert picture.restore(picture.color.expand(3, -1, -1)).mode == "RGB"


def test_files_and_photos_come_back_as_photos_with_16_bits_and_metadata(tmp_path: Path) -> None:
    pixels = noise(3, np.uint16)
    Photo(pixels, Metadata(icc_profile=SRGB)).save(tmp_path / "deep.tif")
    for image in (tmp_path / "deep.tif", str(tmp_path / "deep.tif"), Photo.open(tmp_path / "deep.tif")):
        picture = open_picture(image)
        back = picture.restore(picture.color)
        assert isinstance(back, Photo)
        assert (back.depth, back.format, back.metadata.icc_profile) == (16, "TIFF", SRGB)
        np.testing.assert_array_equal(back, pixels)


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
        (Image.new("F", (4, 4)), ValueError, "photo has float32 pixels: only 8 and 16 bits per channel can be used"),
        ([[1, 2]], TypeError, "photo must be a path, .* got list"),
        (None, TypeError, "got NoneType"),
    ],
)
def test_other_inputs_are_refused_by_name(image: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        open_picture(image, "photo")
