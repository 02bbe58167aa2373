"""Phones, keyboards, accessibility, the page Look inside and folders of photographs."""

import base64
import csv
import os
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from numpy.typing import NDArray
from playwright.sync_api import expect

import psal
from app.conftest import OpenPage, Server
from app.page import AppPage
from psal.io.photo import Photo

PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 800}, "has_touch": True, "is_mobile": True}


def serious_findings(page: AppPage) -> list[str]:
    """What an axe audit finds, but for what it calls minor or moderate."""
    found = Axe().run(page.page).response["violations"]
    return [
        f"{finding['id']}: {[node['html'][:120] for node in finding['nodes']]}"
        for finding in found
        if finding["impact"] in ("serious", "critical")
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("options", [{}, PHONE], ids=["desk", "phone"])
def test_axe_finds_nothing_serious(scheme: Any, options: dict[str, Any], open_page: OpenPage) -> None:
    page = open_page(color_scheme=scheme, reduced_motion="reduce", **options)
    name = f"{scheme}-{'phone' if options else 'desk'}"
    page.screenshot(f"empty-{name}")
    assert serious_findings(page) == []
    page.sample()
    page.screenshot(f"sample-{name}")
    page("#fill").click()
    page.wait_for_steps("Mask", "Remove")
    page.show_tools()
    page("summary").click()
    page.screenshot(f"tools-{name}")
    assert serious_findings(page) == []
    for path in ("inside", "api"):
        page.open(path)
        page.page.wait_for_load_state("networkidle")
        assert serious_findings(page) == []
        assert not page.scrolls_sideways()


def test_a_phone_paints_with_one_finger_and_zooms_with_two(open_page: OpenPage, photo_file: Path) -> None:
    page = open_page(**PHONE)
    page.drop(photo_file)
    assert not page.scrolls_sideways()
    tools = [page(f"[data-tool={name}]").bounding_box() for name in ("brush", "eraser", "lasso", "rectangle", "hand")]
    assert len({box and box["y"] for box in [*tools, page("#panel-open").bounding_box()]}) == 1  # one row
    assert all(box and box["y"] > 700 and box["width"] >= 40 and box["height"] >= 44 for box in tools)
    touch = page.page.context.new_cdp_session(page.page)

    def send(kind: str, *points: tuple[float, float]) -> None:
        places = [dict(zip("xy", page.place(*point), strict=True)) | {"id": k} for k, point in enumerate(points)]
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": places})

    scale = page.scale()
    send("touchStart", (60, 60))
    send("touchMove", (62, 60))
    send("touchStart", (62, 60), (90, 60))
    send("touchMove", (40, 60), (110, 60))
    send("touchEnd")
    assert page.scale() > 1.5 * scale
    expect(page("#steps li")).to_have_count(1)  # two fingers never paint
    page.wait()
    send("touchStart", (60, 60))
    send("touchMove", (70, 62))
    send("touchEnd")
    page.wait_for_steps("Remove")
    page.screenshot("phone-removed")
    set_slider = "(slider) => { slider.value = 60; slider.dispatchEvent(new Event('input')); }"
    page("#size-slider").evaluate(set_slider)  # as long as it moves, the brush shows: a finger has no cursor
    width = page.page.evaluate("import('/assets/editor.js').then(({ editor }) => editor.screen.cursor.size)")
    assert width == pytest.approx(int(page("#size").input_value()) * page.scale())
    page.screenshot("phone-brush")
    page("#size-slider").dispatch_event("change")
    assert page.page.evaluate("import('/assets/editor.js').then(({ editor }) => editor.screen.cursor)") is None
    page.show_tools()
    page("input[value=upscale]").check(force=True)
    page("#scale").fill("9")
    page("[data-edit=upscale] .run").click()
    expect(page.message()).to_contain_text("Scale must be at most 4")
    box = page.message().bounding_box()
    assert box
    assert 0 <= box["x"] <= box["x"] + box["width"] <= 390
    page.screenshot("phone-error")


def test_the_keyboard_does_everything(page: AppPage, photo_file: Path) -> None:
    page.drop(photo_file)
    page.page.keyboard.press("]")
    size = int(page("#size").input_value())
    page.page.keyboard.press("[")
    assert int(page("#size").input_value()) < size
    page("#canvas").focus()
    for key in ("ArrowLeft", "ArrowUp", "Enter"):
        page.page.keyboard.press(key)
    page.wait_for_steps("Remove")
    page("#home").focus()
    seen: list[str] = []
    while "steps" not in seen and len(seen) < 60:
        page.page.keyboard.press("Tab")
        seen.append(page.focused())
        if seen[-1] == "" and "another" in seen:
            seen.append("steps")
    names = ["undo", "original", "open", "download", "canvas", "zoom-out", "inpaint", "auto", "another", "steps"]
    assert [name for name in dict.fromkeys(seen) if name in names] == names
    page("#undo").press("Enter")
    expect(page("#steps [aria-current=step]")).to_have_text("Original")


def test_look_inside_shows_the_weights_of_the_layer(open_page: OpenPage, photo: NDArray[Any], tmp_path: Path) -> None:
    key = np.ascontiguousarray(photo[8:, 10:])
    for name, pixels in {"photo": photo, "reference": key}.items():
        Photo(pixels).save(tmp_path / f"{name}.png")
    page = open_page("inside")
    for role in ("photo", "reference"):
        page.choose("file", f"#{role}", tmp_path / f"{role}.png")
        expect(page(f"#{role}-name")).to_have_text(f"{role}.png")
    page("#aggregate").check()
    page("#temperature").fill("0.2")
    page("#match").click()
    expect(page("#status")).to_contain_text("Row 64, column 80 attends to")
    page("#row").fill("60")
    page("#column").fill("40")
    page("#look").click()
    expect(page("#status")).to_contain_text("Row 60, column 40 attends to")
    page.screenshot("inside", full_page=True)
    with page.saved(tmp_path, "#table").open() as file:
        places = [(int(line["row"]), int(line["column"]), float(line["weight"])) for line in csv.DictReader(file)]
    assert sum(weight for *_, weight in places) == pytest.approx(1, abs=1e-4)
    import psal.io.pictures

    query_map, key_map = (psal.io.pictures.open_picture(pixels).color[None] for pixels in (photo, key))
    out = psal.patch_attention(query_map, key_map, key_map, aggregate=True, temperature=0.2, seed=0)
    assert not isinstance(out, tuple)
    attended = sum(weight * key_map[0, :, row, column] for row, column, weight in places)
    np.testing.assert_allclose(attended, out[0, :, 60, 40], atol=1e-4)
    expect(page("#places tr").first).to_contain_text(
        re.compile(rf"{places[0][0]}\s*{places[0][1]}\s*{places[0][2]:.4f}")
    )
    page("#row").fill("")
    page("#look").click()
    expect(page("#error")).to_have_text("The row must be a whole number.")


def test_a_folder_of_photographs_comes_back_as_a_zip(page: AppPage, photo: NDArray[Any], tmp_path: Path) -> None:
    mask = np.zeros(photo.shape[:2], np.uint8)
    mask[100:120, 20:80] = 255
    Photo(mask).save(tmp_path / "mask.png")
    (tmp_path / "photos").mkdir()
    pictures = {"a.png": photo, "b.png": np.ascontiguousarray(photo[:, ::-1])}
    for name, pixels in pictures.items():
        Photo(pixels).save(tmp_path / "photos" / name)
    Photo(photo[:60]).save(tmp_path / "photos" / "small.png")
    page.drop(tmp_path / "photos" / "a.png")
    page("#folder-open").click()
    page.choose("partner", "#folder-mask", tmp_path / "mask.png")
    page.choose(
        "many", "#folder-photos", *(tmp_path / "photos" / name for name in sorted(os.listdir(tmp_path / "photos")))
    )
    page("#folder-run").click()
    expect(page("#folder-status")).to_have_text("2 of 3 done.")
    expect(page("#folder-failures li")).to_contain_text(
        ["small.png: mask.png is 160 × 128 pixels and the picture 160 × 60"]
    )
    page.screenshot("folder")
    with zipfile.ZipFile(page.saved(tmp_path, "#folder-zip")) as packed:
        packed.extractall(tmp_path / "out")
    assert sorted(os.listdir(tmp_path / "out")) == ["a.png", "b.png"]
    for name, pixels in pictures.items():
        np.testing.assert_array_equal(Photo.open(tmp_path / "out" / name).pixels, psal.inpaint(pixels, mask, seed=0))


def test_photographs_that_are_dropped_take_the_mask_that_is_painted(
    page: AppPage, photo: NDArray[Any], photo_file: Path, tmp_path: Path
) -> None:
    page.drop(photo_file)
    page("#auto").uncheck()
    page.tool("rectangle")
    page.stroke((20.2, 30.2), (49.8, 59.8))
    page.wait_for_steps("Rectangle")
    page.page.evaluate(
        """(data) => {
            const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
            const transfer = new DataTransfer();
            for (const name of ["a.png", "b.png"]) transfer.items.add(new File([bytes], name, { type: "image/png" }));
            const options = { bubbles: true, cancelable: true, dataTransfer: transfer };
            document.body.dispatchEvent(new DragEvent("drop", options));
        }""",
        base64.b64encode(photo_file.read_bytes()).decode(),
    )
    expect(page("#folder-photos-name")).to_have_text("2 photographs")
    page("#folder-marked").click()
    expect(page("#folder-mask-name")).to_have_text("what is marked.png")
    page("#folder-run").click()
    expect(page("#folder-status")).to_have_text("2 of 2 done.")
    page.screenshot("folder-marked")
    with zipfile.ZipFile(page.saved(tmp_path, "#folder-zip")) as packed:
        packed.extractall(tmp_path / "out")
    mask = np.zeros(photo.shape[:2], bool)
    mask[30:60, 20:50] = True
    for name in ("a.png", "b.png"):
        np.testing.assert_array_equal(Photo.open(tmp_path / "out" / name).pixels, psal.inpaint(photo, mask, seed=0))


def test_nothing_moves_for_those_who_want_it_so(open_page: OpenPage, photo_file: Path) -> None:
    phase = "import('/assets/editor.js').then(({ editor }) => editor.screen.phase)"
    frames = """new Promise((done) => {
        let count = 0;
        const next = () => (++count > 40 ? done() : requestAnimationFrame(next));
        next();
    })"""
    for motion in ("no-preference", "reduce"):
        page = open_page(reduced_motion=motion)
        page.drop(photo_file)
        page("#auto").uncheck()
        page.stroke((60, 60), (70, 60))
        page.wait_for_steps("Brush")
        if motion == "reduce":
            page.page.evaluate(frames)
            assert page.page.evaluate(phase) == 0
        else:
            page.page.wait_for_function(f"{phase}.then((phase) => phase > 0)")


def test_the_page_is_small(open_page: OpenPage, server: Server) -> None:
    page = open_page("none")
    answers: list[Any] = []
    page.page.on("response", lambda answer: answers.append(answer))
    page.open()
    page.page.wait_for_load_state("networkidle")
    assert len(answers) <= 15
    assert sum(len(answer.body()) for answer in answers) <= 300_000


@pytest.mark.parametrize("width", [1000, 1180, 1400])
def test_zoom_and_tools_leave_the_photograph_and_each_other_free(
    width: int, open_page: OpenPage, photo_file: Path
) -> None:
    page = open_page(viewport={"width": width, "height": 760})
    page.drop(photo_file)
    tools, zoom = page("#tools").bounding_box(), page("#zoom").bounding_box()
    assert tools
    assert zoom
    assert tools["x"] + tools["width"] < zoom["x"]
    assert min(tools["y"], zoom["y"]) >= page.place(0, 128)[1]
