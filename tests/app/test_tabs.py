"""The other tabs in a browser, each against what Python gives."""

import csv
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from playwright.sync_api import expect

import psal
import psal.io.pictures
from app.conftest import OpenPage
from app.page import TABS, AppPage
from psal.data.samples import samples
from psal.io.photo import Photo

SAMPLES = {sample.edit: sample for sample in samples()}


@pytest.fixture
def pair(tmp_path: Path) -> dict[str, Path]:
    """Two views of a scene, small, and the first of them in gray."""
    sample = SAMPLES["reconstruct"]
    left, right = sample.picture[:120, :160], sample.partner
    assert right is not None
    pictures = {
        "photo": left,
        "reference": right[:110, :170],
        "gray": left.mean(2).round().astype(np.uint8),
    }
    for name, pixels in pictures.items():
        Photo(np.ascontiguousarray(pixels)).save(tmp_path / f"{name}.png")
    return {name: tmp_path / f"{name}.png" for name in pictures}


def downloaded(page: AppPage, tab: str, name: str, folder: Path) -> NDArray[Any]:
    path = folder / page.download(tab, name).suggested_filename
    page.download(tab, name).save_as(path)
    return Photo.open(path).pixels


def test_colorize(page: AppPage, pair: dict[str, Path], tmp_path: Path) -> None:
    page.go_to("colorize")
    page.drop("colorize", "photo", pair["gray"])
    page.drop("colorize", "reference", pair["reference"])
    page.set_seed("colorize", 2)
    page.run("colorize", "Done in")
    gray, reference = (Photo.open(pair[name]).pixels for name in ("gray", "reference"))
    np.testing.assert_array_equal(
        downloaded(page, "colorize", "result", tmp_path), psal.colorize(gray, reference, seed=2)
    )


def test_reconstruct(page: AppPage, pair: dict[str, Path], tmp_path: Path) -> None:
    page.go_to("reconstruct")
    page.drop("reconstruct", "photo", pair["photo"])
    page.drop("reconstruct", "reference", pair["reference"])
    page.run("reconstruct", "Done in")
    photo, reference = (Photo.open(pair[name]).pixels for name in ("photo", "reference"))
    rebuilt, shifts = psal.reconstruct(photo, reference, seed=0, return_shifts=True)
    np.testing.assert_array_equal(downloaded(page, "reconstruct", "result", tmp_path), rebuilt)
    np.testing.assert_array_equal(downloaded(page, "reconstruct", "shifts-file", tmp_path), shifts)
    expect(page.picture("reconstruct", "shifts").first).to_be_visible()


def test_upscale(page: AppPage, pair: dict[str, Path], tmp_path: Path) -> None:
    page.go_to("upscale")
    page.drop("upscale", "photo", pair["photo"])
    page.set_number("upscale", "scale", 1.5)
    page.run("upscale", "240 × 180")
    photo = Photo.open(pair["photo"]).pixels
    np.testing.assert_array_equal(downloaded(page, "upscale", "result", tmp_path), psal.upscale(photo, 1.5, seed=0))


def test_look_inside_shows_the_weights_of_a_clicked_pixel(page: AppPage, pair: dict[str, Path], tmp_path: Path) -> None:
    page.go_to("inside")
    page.drop("inside", "photo", pair["photo"])
    page.drop("inside", "reference", pair["reference"])
    page.check("inside", "aggregate")
    page.set_number("inside", "temperature", 0.2)
    page.run("inside", "Matched in")
    page.click_picture("inside", "query", 0.25, 0.5)
    expect(page.message("inside")).to_contain_text("Row 60, column 40 attends to")
    path = tmp_path / "places.csv"
    page.download("inside", "csv").save_as(path)
    with path.open() as lines:
        places = [(int(row["row"]), int(row["column"]), float(row["weight"])) for row in csv.DictReader(lines)]
    assert sum(weight for _, _, weight in places) == pytest.approx(1, abs=1e-3)
    query, key = (
        psal.io.pictures.open_picture(Photo.open(pair[name]).pixels).color[None] for name in ("photo", "reference")
    )
    out = psal.patch_attention(query, key, key, aggregate=True, temperature=0.2, seed=0)
    assert not isinstance(out, tuple)
    attended = sum(weight * key[0, :, row, column] for row, column, weight in places)
    np.testing.assert_allclose(attended, out[0, :, 60, 40], atol=1e-4)
    expect(page.table()).to_contain_text(re.compile(rf"{places[0][0]}\s*{places[0][1]}\s*{places[0][2]:.4f}"))
    figure = downloaded(page, "inside", "figure", tmp_path)
    assert figure.shape == (2 * 120, 2 * (160 + 170) + 16, 3)
    page.screenshot("inside", full_page=True)


def test_look_inside_takes_one_picture_and_a_pixel_by_numbers(page: AppPage, pair: dict[str, Path]) -> None:
    page.go_to("inside")
    page.drop("inside", "photo", pair["photo"])
    page.run("inside", "attends to 3 places")
    page.set_number("inside", "row", 5)
    page.set_number("inside", "column", 7)
    page.button("inside", "look").press("Enter")
    expect(page.message("inside")).to_contain_text("Row 5, column 7")
    expect(page.table()).to_contain_text(re.compile(r"5\s*7\s*0\.\d"))  # nothing is more alike than the pixel itself
    page.clear_number("inside", "row")
    page.button("inside", "look").press("Enter")
    expect(page.message("inside")).to_contain_text("The row must be a whole number, got nothing.")


@pytest.mark.parametrize("tab", list(TABS))
def test_each_tab_has_a_sample_and_shows_its_result(tab: str, page: AppPage) -> None:
    if tab != "inpaint":
        page.go_to(tab)
    page.put_sample(tab)
    if tab == "inpaint":
        page.wait_for_canvas()
    page.run(tab, "in ")
    shown = page.picture("inside", "key") if tab == "inside" else page.slider_pictures(tab)
    expect(shown.first).to_be_visible()
    page.screenshot(f"{tab}-sample", full_page=True)


@pytest.mark.parametrize("tab", [tab for tab in TABS if tab != "inpaint"])
def test_no_tab_scrolls_sideways_in_a_narrow_window(tab: str, open_page: OpenPage) -> None:
    page = open_page(viewport={"width": 390, "height": 800})
    page.go_to(tab)
    page.put_sample(tab)
    assert not page.scrolls_sideways()
    assert page.torn_words() == []
    for name in ("run", "stop", "sample"):
        box = page.button(tab, name).bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390
    page.screenshot(f"{tab}-narrow", full_page=True)
