from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image, ImageDraw, ImageFilter, ImageOps
from skimage.data import chelsea
from support.pixels import HEIGHT, WIDTH, noise

from psal.io.masks import open_mask
from psal.io.photo import Photo


@pytest.mark.parametrize(
    "kind", ["bool", "uint8", "ones", "float", "rgb", "tensor", "bool tensor", "pillow", "photo", "file"]
)
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
        "photo": Photo(white),
        "file": tmp_path / "mask.png",
    }
    assert open_mask(masks[kind], (HEIGHT, WIDTH)).equal(torch.from_numpy(hole))


def test_transparent_pixels_are_outside_of_the_hole() -> None:
    mask = np.full((HEIGHT, WIDTH, 4), 255, np.uint8)
    mask[:, 5:, 3] = 0
    assert open_mask(mask, (HEIGHT, WIDTH)).sum() == 5 * HEIGHT


def test_a_mask_of_another_size_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="hole is 17 × 11 pixels and the picture 11 × 17"):
        open_mask(noise(None), (WIDTH, HEIGHT), "hole")
    Image.fromarray(noise(None)).save(tmp_path / "mask.png")
    with pytest.raises(ValueError, match=r"mask\.png is 17 × 11 pixels and the picture 11 × 17"):
        open_mask(tmp_path / "mask.png", (WIDTH, HEIGHT))


def photograph() -> Image.Image:
    """A cat, in many colors."""
    return Image.fromarray(chelsea())


@pytest.mark.parametrize("kind", ["photo", "gray", "painted red", "erased", "blank gray", "16 bit"])
def test_a_photo_is_refused_as_a_mask(kind: str) -> None:
    image = photograph()
    marked = 100, 50, 250, 150
    if kind == "gray":
        image = image.convert("L")
    elif kind == "painted red":
        image.paste((255, 0, 0), marked)
    elif kind == "erased":
        image.putalpha(255)
        image.paste((0, 0, 0, 0), marked)
    elif kind == "blank gray":
        image = Image.new("L", image.size, 100)
    pixels = np.asarray(image)
    if kind == "16 bit":
        pixels = pixels.astype(np.uint16) * 257
    with pytest.raises(ValueError, match=r"^mask is not a mask: \d+% of .*: make it white in the hole and black els"):
        open_mask(pixels, pixels.shape[:2])


@pytest.mark.parametrize("kind", ["antialiased", "blurred", "jpeg", "alpha", "soft alpha", "red", "wide hole", "float"])
def test_soft_and_painted_masks_are_accepted(kind: str, tmp_path: Path) -> None:
    size = 451, 300
    drawn = Image.new("L", (4 * size[0], 4 * size[1]))
    ImageDraw.Draw(drawn).ellipse((300, 200, 1200, 900), fill=255)
    image: Any = drawn.resize(size, Image.Resampling.BOX)
    hole = torch.from_numpy(np.asarray(image) > 127)
    if kind == "blurred":
        image = image.filter(ImageFilter.GaussianBlur(8))
    elif kind == "jpeg":
        image.convert("RGB").save(tmp_path / "mask.jpg", quality=40)
        image = tmp_path / "mask.jpg"
    elif kind == "alpha":
        image.putalpha(255)
    elif kind == "soft alpha":
        white = Image.new("RGB", size, "white")
        white.putalpha(image)
        image = white
    elif kind == "red":
        image = Image.merge("RGB", [image, Image.new("L", size), Image.new("L", size)])
    elif kind == "wide hole":
        hole, image = ~hole, ImageOps.invert(image)
    elif kind == "float":
        image = np.linspace(0, 1, hole.numel()).reshape(hole.shape)
        hole = torch.from_numpy(image) >= 0.5
    assert (open_mask(image, tuple(hole.shape)) != hole).float().mean() < 0.01  # type: ignore[arg-type]
