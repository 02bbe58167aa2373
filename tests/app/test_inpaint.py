"""The tab *Fill* in a browser."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from playwright.sync_api import expect
from support.pixels import SRGB

import psal
from app.conftest import OpenPage, Server
from app.page import AppPage
from psal.io.photo import Photo


def pixels_of(path: str | Path) -> NDArray[Any]:
    return Photo.open(path).pixels


def saved(page: AppPage, name: str, folder: Path) -> Path:
    """Download a file."""
    download = page.download("inpaint", name)
    path = folder / f"{name}-{download.suggested_filename}"
    download.save_as(path)
    return path


def test_a_painted_stroke_is_filled_as_psal_fills_it(
    page: AppPage, photo: NDArray[Any], photo_file: Path, tmp_path: Path
) -> None:
    page.drop("inpaint", "photo", photo_file)
    page.wait_for_canvas()
    page.set_brush(20)
    page.stroke((0.3, 0.5), (0.6, 0.5))
    page.set_seed("inpaint", 3)
    page.run("inpaint", "seed 3")
    page.screenshot("inpaint-painted", full_page=True)
    mask = pixels_of(saved(page, "hole", tmp_path))
    assert mask.shape == photo.shape[:2]
    height, width = mask.shape
    assert (mask[height // 2, int(0.32 * width) : int(0.58 * width)] == 255).all()
    assert not mask[: height // 4].any()
    assert 0.7 < (mask > 0).sum() / (0.3 * width * 20 + np.pi * 100) < 1.3
    result = saved(page, "result", tmp_path)
    assert result.name.endswith("my photo_inpaint.png")
    np.testing.assert_array_equal(pixels_of(result), psal.inpaint(photo, mask, seed=3))
    expect(page.slider_pictures("inpaint").first).to_be_visible()


def test_filling_again_takes_another_seed_and_painting_goes_on_on_the_result(
    page: AppPage, photo: NDArray[Any], photo_file: Path, tmp_path: Path
) -> None:
    page.drop("inpaint", "photo", photo_file)
    page.wait_for_canvas()
    page.set_brush(24)
    page.stroke((0.3, 0.4), (0.5, 0.5))
    page.run("inpaint", "seed 0")
    first = pixels_of(saved(page, "result", tmp_path))
    page.run("inpaint", "seed 1", "again")
    assert page.seed("inpaint") == 1
    second = pixels_of(saved(page, "result", tmp_path))
    assert (first != second).any()
    page.run("inpaint", "ready to paint on", "go-on")
    page.wait_for_canvas()
    assert page.painted_pixels() == 0
    page.stroke((0.7, 0.7), (0.8, 0.7))
    page.run("inpaint", "seed 1")
    mask = pixels_of(saved(page, "hole", tmp_path))
    np.testing.assert_array_equal(pixels_of(saved(page, "result", tmp_path)), psal.inpaint(second, mask, seed=1))


def test_a_mask_that_is_dropped_is_used_as_it_is(
    page: AppPage, photo: NDArray[Any], photo_file: Path, tmp_path: Path
) -> None:
    mask = np.zeros(photo.shape[:2], np.uint8)
    mask[40:70, 50:90] = 255
    Photo(mask).save(tmp_path / "mask.png")
    page.drop("inpaint", "photo", photo_file)
    page.drop("inpaint", "mask", tmp_path / "mask.png")
    page.wait_for_canvas()
    page.run("inpaint", "seed 0")
    np.testing.assert_array_equal(pixels_of(saved(page, "result", tmp_path)), psal.inpaint(photo, mask, seed=0))


def test_undo_redo_eraser_and_clear(page: AppPage, photo_file: Path) -> None:
    page.drop("inpaint", "photo", photo_file)
    page.wait_for_canvas()
    page.set_brush(20)
    page.stroke((0.2, 0.3), (0.8, 0.3))
    painted = page.painted_pixels()
    assert painted > 0
    page.painting_tool("undo").click()
    assert page.painted_pixels() == 0
    page.painting_tool("redo").click()
    assert page.painted_pixels() == painted
    page.painting_tool("eraser").click()
    page.stroke((0.5, 0.2), (0.5, 0.4))
    assert 0 < page.painted_pixels() < painted
    page.painting_tool("empty").click()
    assert page.painted_pixels() == 0
    page.canvas().press("Control+z")
    assert page.painted_pixels() > 0
    page.painting_tool("empty").click()
    page.run("inpaint", "Nothing is marked")


def test_a_large_jpeg_is_painted_small_and_comes_back_whole(page: AppPage, photo: NDArray[Any], tmp_path: Path) -> None:
    """Format, size, EXIF and color profile stay, and the hole follows the stroke at full size."""
    large = Image.fromarray(photo).resize((2400, 1920), Image.Resampling.BICUBIC)
    exif = Image.Exif()
    exif[0x010F] = "A camera"
    large.save(tmp_path / "large.jpg", quality=95, exif=exif, icc_profile=SRGB)
    page.drop("inpaint", "photo", tmp_path / "large.jpg")
    page.wait_for_canvas()
    page.set_brush(40)
    page.stroke((0.4, 0.5), (0.5, 0.5))
    page.run("inpaint", "2400 × 1920")
    mask = pixels_of(saved(page, "hole", tmp_path))
    assert mask.shape == (1920, 2400)
    assert (mask[960, 960:1200] == 255).all()
    path = saved(page, "result", tmp_path)
    with Image.open(path) as image:
        assert (image.format, image.size) == ("JPEG", (2400, 1920))
        assert image.getexif()[0x010F] == "A camera"
        assert image.info["icc_profile"] == SRGB
    original = Photo.open(tmp_path / "large.jpg")
    expected = tmp_path / "expected.jpg"
    original.with_pixels(psal.inpaint(original.pixels, mask, seed=0)).save(expected)
    np.testing.assert_array_equal(pixels_of(path), pixels_of(expected))


def test_sixteen_bits_stay(page: AppPage, photo: NDArray[Any], tmp_path: Path) -> None:
    deep = photo.astype(np.uint16) * 257
    Photo(deep).save(tmp_path / "deep.tif")
    page.drop("inpaint", "photo", tmp_path / "deep.tif")
    page.wait_for_canvas()
    page.stroke((0.4, 0.5), (0.5, 0.5))
    page.run("inpaint", "seed 0")
    mask, path = pixels_of(saved(page, "hole", tmp_path)), saved(page, "result", tmp_path)
    assert path.suffix == ".tif"
    np.testing.assert_array_equal(pixels_of(path), psal.inpaint(deep, mask, seed=0))


@pytest.mark.parametrize("width", [390])
def test_a_narrow_window_is_usable(open_page: OpenPage, width: int, photo_file: Path) -> None:
    page = open_page(viewport={"width": width, "height": 800}, has_touch=True)
    page.put_sample("inpaint")
    page.wait_for_canvas()
    page.run("inpaint", "Done in")
    assert not page.scrolls_sideways()
    page.screenshot("inpaint-narrow", full_page=True)
    for name in ("run", "stop", "again", "go-on", "result", "hole"):
        box = page.button("inpaint", name).bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width


def test_the_keyboard_reaches_everything_and_enter_fills(page: AppPage) -> None:
    page.put_sample("inpaint")
    page.wait_for_canvas()
    page.tab("inpaint").focus()
    seen: list[str | None] = []
    while "inpaint-stop" not in seen and len(seen) < 60:
        page.page.keyboard.press("Tab")
        seen.append(page.focused())
        if seen[-1] == "inpaint-run":
            page.page.keyboard.press("Enter")
    names = ["inpaint-photo", "inpaint-mask", "inpaint-sample", "inpaint-painter", "inpaint-run", "inpaint-stop"]
    assert [name for name in dict.fromkeys(seen) if name in names] == names
    expect(page.message("inpaint")).to_contain_text("Done in")


def test_files_go_when_the_session_does(open_page: OpenPage, server: Server, photo_file: Path) -> None:
    others = set(server.sessions_files())
    page = open_page()
    page.put_sample("inpaint")
    page.wait_for_canvas()
    page.run("inpaint", "Done in")
    assert set(server.sessions_files()) - others
    other = open_page()
    page.page.close()
    server.wait_until(lambda: set(server.sessions_files()) <= others)
    other.put_sample("inpaint")  # and nobody else is disturbed
