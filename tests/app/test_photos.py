"""Editing a photograph through HTTP, each result against what Python gives."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from support.pixels import SRGB

import psal
from app.client import Client, picture, png
from psal.data.samples import samples
from psal.io.photo import Photo


def opened(client: Client, photo: NDArray[Any]) -> dict[str, Any]:
    return client.open(png(photo))


def test_a_stroke_is_filled_as_psal_fills_it_and_undone_as_one_step(client: Client, photo: NDArray[Any]) -> None:
    opened(client, photo)
    client.stroke((50, 60), (90, 64), size=21)
    hole = client.hole()
    y, x = np.mgrid[:128, :160] + 0.5
    share = np.clip(((x - 50) * 40 + (y - 60) * 4) / (40**2 + 4**2), 0, 1)
    np.testing.assert_array_equal(hole, np.hypot(x - 50 - 40 * share, y - 60 - 4 * share) <= 10.5)
    client.do("/position", {"position": 0})
    state = client.stroke((50, 60), (90, 64), size=21, fill=True, seed=3)
    assert (state["steps"], state["hole"], state["variants"]) == (["Remove"], False, {"seeds": [3], "chosen": 0})
    filled = psal.inpaint(photo, hole, seed=3)
    np.testing.assert_array_equal(client.pixels(), filled)
    state = client.do("/position", {"position": 0})
    assert (state["hole"], state["steps"]) == (False, ["Remove"])
    np.testing.assert_array_equal(client.pixels(), photo)
    client.do("/position", {"position": 1})
    np.testing.assert_array_equal(client.pixels(), filled)
    assert not client.hole().any()


def test_collected_strokes_are_steps_of_their_own(client: Client, photo: NDArray[Any]) -> None:
    opened(client, photo)
    client.stroke((40, 40), size=15)
    client.do("/marks", {"kind": "rectangle", "points": [[80, 60], [99.5, 70]]})
    client.do("/marks", {"kind": "lasso", "points": [[120, 20], [140, 20], [130, 40]]})
    client.do("/marks", {"kind": "stroke", "points": [[85, 60], [85, 75]], "size": 3, "erase": True})
    hole = client.hole()
    assert hole[65, 95] and not hole[65, 85] and hole[25, 130] and hole[69, 99] and not hole[70, 99]  # noqa: PT018
    state = client.do("/fill", {"seed": 1})
    assert state["steps"] == ["Brush", "Rectangle", "Lasso", "Eraser", "Remove"]
    np.testing.assert_array_equal(client.pixels(), psal.inpaint(photo, hole, seed=1))
    client.do("/position", {"position": 4})
    np.testing.assert_array_equal(client.hole(), hole)
    client.do("/position", {"position": 2})
    assert client.hole()[65, 85]
    state = client.stroke((20, 100), size=9)
    assert state["steps"] == ["Brush", "Rectangle", "Brush"]


def test_masks_are_inverted_grown_cleared_and_read_from_files(client: Client, photo: NDArray[Any]) -> None:
    opened(client, photo)
    mask = np.zeros((128, 160), np.uint8)
    mask[40:70, 50:90] = 255
    client.do("/mask?name=m.png", content=png(mask))
    np.testing.assert_array_equal(client.hole(), mask > 0)
    client.do("/marks", {"kind": "grow", "pixels": 3})
    assert client.hole().sum() == 30 * 40 + 2 * 3 * (30 + 40) + 4 * np.sum(np.hypot(*np.mgrid[1:4, 1:4]) <= 3)
    client.do("/position", {"position": 1})
    client.do("/marks", {"kind": "invert"})
    np.testing.assert_array_equal(client.hole(), mask == 0)
    assert not client.do("/marks", {"kind": "clear"})["hole"]
    refused = client.post("/fill", {})
    assert (refused.status_code, refused.json()) == (422, {"error": "nothing is marked: paint over what to remove"})
    client.post("/mask?name=other.png", content=png(mask[:50, :60]))
    refused = client.post("/mask?name=other.png", content=png(mask[:50, :60]))
    assert refused.json()["error"].startswith("other.png is 60 × 50 pixels and the picture 160 × 128")


def test_variants_are_clicked_through(client: Client, photo: NDArray[Any]) -> None:
    opened(client, photo)
    client.stroke((60, 60), (80, 60), size=25)
    hole = client.hole()
    client.do("/fill", {"seed": 5})
    first = client.pixels()
    state = client.do("/variant", {})
    assert state["variants"] == {"seeds": [5, 6], "chosen": 1}
    np.testing.assert_array_equal(client.pixels(), psal.inpaint(photo, hole, seed=6))
    client.do("/variant", {"index": 0})
    np.testing.assert_array_equal(client.pixels(), first)
    client.do("/position", {"position": 1})
    np.testing.assert_array_equal(client.pixels(), photo)
    assert client.post("/variant", {"index": 0}).status_code == 422
    client.do("/position", {"position": 2})
    assert client.post("/variant", {"index": 2}).status_code == 422


def test_a_fill_is_taken_from_the_painted_source_and_follows_the_guide(client: Client, photo: NDArray[Any]) -> None:
    opened(client, photo)
    client.do("/marks", {"kind": "rectangle", "points": [[90, 0], [160, 128]], "layer": "source", "fill": True})
    guide = np.ascontiguousarray(photo[:, ::-1])
    assert client.do("/guide?name=sketch.png", content=png(guide))["guide"] == "sketch.png"
    state = client.stroke((50, 60), (60, 60), size=25, fill=True)
    assert (state["steps"], state["source"]) == (["Rectangle", "Remove"], True)
    hole, source = np.zeros((2, 128, 160), bool)
    y, x = np.mgrid[:128, :160] + 0.5
    hole = np.hypot(x - np.clip(x, 50, 60), y - 60) <= 12.5
    source[:, 90:] = True
    expected = psal.inpaint(photo, hole, seed=0, source_mask=source, guide=guide)
    np.testing.assert_array_equal(client.pixels(), expected)
    client.do("/variant", {})
    expected = psal.inpaint(photo, hole, seed=1, source_mask=source, guide=guide)
    np.testing.assert_array_equal(client.pixels(), expected)
    assert client.do("/guide")["guide"] is None
    assert client.post("/variant", {}).status_code == 422
    refused = client.post("/guide?name=small.png", content=png(guide[:50]))
    assert refused.json()["error"].startswith("small.png is 160 × 50 pixels and the picture 160 × 128")


def test_a_fill_fades_into_the_photograph_and_is_undone(client: Client, photo: NDArray[Any]) -> None:
    opened(client, photo)
    client.stroke((60, 60), (80, 60), size=25)
    hole = client.hole()
    state = client.do("/fill", {"seed": 2, "feather": 6})
    rows, columns = np.nonzero(hole)
    assert state["changed"] == [rows.min() - 6, columns.min() - 6, rows.max() + 7, columns.max() + 7]
    filled = client.pixels()
    np.testing.assert_array_equal(filled, psal.inpaint(photo, hole, seed=2, feather=6))
    assert (filled != photo)[~hole].any()
    client.do("/variant", {})
    np.testing.assert_array_equal(client.pixels(), psal.inpaint(photo, hole, seed=3, feather=6))
    client.do("/position", {"position": 1})
    np.testing.assert_array_equal(client.pixels(), photo)
    np.testing.assert_array_equal(client.hole(), hole)
    refused = client.post("/fill", {"feather": 1001})
    assert (refused.status_code, refused.json()["error"]) == (422, "the feather must be from 0 to 1000")


def test_a_photograph_is_extended(client: Client, photo: NDArray[Any]) -> None:
    opened(client, photo)
    state = client.do("/edits/outpaint?left=12&top=5")
    assert (state["width"], state["height"], state["steps"]) == (172, 133, ["Outpaint"])
    np.testing.assert_array_equal(client.pixels(), psal.outpaint(photo, left=12, top=5, seed=0))
    assert client.post("/edits/outpaint?left=-1").status_code == 422
    state = client.do("/edits/outpaint?left=20000&top=20000")
    assert "the result would have" in state["message"]["text"]
    assert client.do("/position", {"position": 0})["width"] == 160


def test_a_jpeg_comes_back_with_its_format_and_metadata(client: Client, photo: NDArray[Any], tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x010F] = "A camera"
    Image.fromarray(photo).save(tmp_path / "holiday.jpeg", quality=95, exif=exif, icc_profile=SRGB)
    client.open(tmp_path / "holiday.jpeg")
    client.stroke((60, 60), size=20)
    hole = client.hole()
    state = client.do("/fill", {})
    assert not state["saved"]
    answer = client.get("/file")
    assert "holiday_edited.jpeg" in answer.headers["content-disposition"]
    with Image.open(io.BytesIO(answer.content)) as image:
        assert (image.format, image.size, image.getexif()[0x010F]) == ("JPEG", (160, 128), "A camera")
        assert image.info["icc_profile"] == SRGB
    original = Photo.open(tmp_path / "holiday.jpeg")
    original.with_pixels(psal.inpaint(original.pixels, hole, seed=0)).save(tmp_path / "expected.jpeg")
    np.testing.assert_array_equal(picture(answer.content), Photo.open(tmp_path / "expected.jpeg").pixels)
    assert client.wait()["saved"]
    assert picture(client.download(format="png")).shape == (128, 160, 3)
    assert client.get("/file?format=exe").status_code == 422
    with Image.open(io.BytesIO(client.get("/tiles/pixels/0/0/0").content)) as tile:
        assert tile.info["icc_profile"] == SRGB


@pytest.mark.parametrize("shape", [(97, 83), (97, 83, 2), (97, 83, 3), (97, 83, 4)])
def test_sixteen_bits_and_every_kind_of_channel_stay(shape: tuple[int, ...], client: Client, tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 2**16, shape).astype(np.uint16)
    Photo(pixels).save(tmp_path / "deep.tif")
    client.open(tmp_path / "deep.tif")
    client.stroke((40, 40), size=20)
    hole = client.hole()
    client.do("/fill", {})
    (tmp_path / "out.tif").write_bytes(client.download())
    original = Photo.open(tmp_path / "deep.tif")
    original.with_pixels(psal.inpaint(original.pixels, hole, seed=0)).save(tmp_path / "expected.tif")
    result, expected = (Photo.open(tmp_path / f"{name}.tif").pixels for name in ("out", "expected"))
    assert result.dtype == np.uint16
    np.testing.assert_array_equal(result, expected)
    assert picture(client.get("/tiles/pixels/0/0/0").content).shape[:2] == (97, 83)


def test_the_other_edits_are_steps_too(client: Client) -> None:
    sample = next(sample for sample in samples() if sample.edit == "colorize")
    gray, reference = sample.picture[:120, :150], sample.partner
    assert reference is not None
    client.open(png(np.ascontiguousarray(gray)))
    state = client.do("/edits/colorize?seed=2&name=r.png", content=png(reference))
    assert state["steps"] == ["Colorize"]
    np.testing.assert_array_equal(client.pixels(), psal.colorize(np.ascontiguousarray(gray), reference, seed=2))
    before = client.pixels()
    client.stroke((60, 60), size=20, fill=True)
    state = client.do("/edits/upscale?scale=1.5")
    assert (state["width"], state["height"]) == (225, 180)
    large = client.pixels()
    assert large.shape == (180, 225, 3)
    assert picture(client.get("/tiles/original/0/0/0").content).shape[:2] == (180, 225)
    client.stroke((100, 100), size=30, fill=True)
    state = client.do("/position", {"position": 1})
    np.testing.assert_array_equal(client.pixels(), before)
    client.do("/position", {"position": 3})
    np.testing.assert_array_equal(client.pixels(), large)
    refused = client.post("/edits/upscale?scale=9")
    assert (refused.status_code, refused.json()["error"]) == (422, "scale must be at most 4")
    state = client.do("/edits/reconstruct?name=r.png", content=b"no picture")
    assert "r.png is damaged, or not a picture" in state["message"]["text"]
    assert len(state["steps"]) == 4


def test_a_hole_in_24_megapixels_is_painted_and_checked_at_full_resolution(client: Client, large: bytes) -> None:
    client.open(large, "large.jpg")
    state = client.stroke((4001.5, 2502.5), size=41, fill=True)
    assert (state["steps"], state["changed"]) == (["Remove"], [2482, 3981, 2523, 4022])
    before, after = (picture(client.get(f"/tiles/{layer}/0/7/4").content) for layer in ("original", "pixels"))
    assert before.shape == (512, 512, 3)
    changed = (before != after).any(2)
    y, x = np.mgrid[2048:2560, 3584:4096] + 0.5
    assert not changed[np.hypot(x - 4001.5, y - 2502.5) > 20.5].any()
    assert changed.sum() > 100
    assert picture(client.get("/tiles/pixels/4/0/0").content).shape == (250, 375, 3)
    assert client.get("/tiles/hole/0/7/4").status_code == 204
    for bad in ("pixels/0/12/0", "pixels/9/0/0", "pixels/0/0/-1", "faces/0/0/0", "pixels/0/0/99999999999999999999"):
        assert client.get(f"/tiles/{bad}").status_code in (404, 405), bad


def test_a_bad_second_file_leaves_the_first_one_open(client: Client, photo_file: Path) -> None:
    client.open(photo_file)
    client.stroke((60, 60), size=20, fill=True)
    refused = client.send(b"Dear all", "letter.png")
    assert refused.status_code == 422
    assert client.get().json()["steps"] == ["Remove"]
