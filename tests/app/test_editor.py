"""The editor in a browser: painting, undo, zoom, files."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from playwright.sync_api import expect

import psal
from app.page import AppPage
from psal.io.photo import Photo


def pixels_of(path: Path) -> NDArray[Any]:
    return Photo.open(path).pixels


def test_what_is_painted_over_is_gone_when_the_brush_is_released(
    page: AppPage, photo: NDArray[Any], photo_file: Path, tmp_path: Path
) -> None:
    page.drop(photo_file)
    page.set_size(21)
    before = page.color(70, 62)
    page.stroke((50, 60), (90, 64), release=False)
    page.screenshot("painting")
    page.page.mouse.up()
    page.wait_for_steps("Remove")
    page.screenshot("removed")
    result = pixels_of(page.saved(tmp_path))
    changed = (result != photo).any(2)
    y, x = np.mgrid[:128, :160] + 0.5
    share = np.clip(((x - 50) * 40 + (y - 60) * 4) / (40**2 + 4**2), 0, 1)
    distance = np.hypot(x - 50 - 40 * share, y - 60 - 4 * share)
    assert not changed[distance > 11.5].any()
    assert changed[distance < 9.5].mean() > 0.5
    assert page.color(70, 62) == list(result[62, 70])
    page.page.keyboard.press("Control+z")
    expect(page("#steps [aria-current=step]")).to_have_text("Original")
    page.wait()
    assert page.color(70, 62) == before == list(photo[62, 70])
    page.page.keyboard.press("Control+Shift+z")
    expect(page("#steps [aria-current=step]")).to_have_text("Remove")
    page.wait()
    page.page.keyboard.down("o")  # as long as it is held, the original shows
    expect(page("#original")).to_have_attribute("aria-pressed", "true")
    page.wait()
    assert page.color(70, 62) == before
    page.page.keyboard.up("o")
    page.wait()
    assert page.color(70, 62) == list(result[62, 70])


def test_several_strokes_are_collected_while_a_key_is_held(page: AppPage, photo_file: Path) -> None:
    page.drop(photo_file)
    page.set_size(15)
    page.page.keyboard.down("Control")
    page.stroke((30, 30), (50, 30))
    page.wait_for_steps("Brush")
    page.stroke((100, 90), (120, 90))
    page.wait_for_steps("Brush", "Brush")
    expect(page("#fill")).to_be_visible()
    page.page.keyboard.press("z")  # with Ctrl: the last stroke goes, and nothing is filled when the key is released
    expect(page("#steps [aria-current=step]")).to_have_text("Brush")
    page.page.keyboard.up("Control")
    page.wait()
    expect(page("#steps li")).to_have_count(3)
    page.page.keyboard.down("Shift")
    page.stroke((60, 100), (70, 100))
    page.wait_for_steps("Brush", "Brush")
    page.page.keyboard.up("Shift")
    page.wait_for_steps("Brush", "Brush", "Remove")
    page(
        "#steps button",
    ).first.click()
    expect(page("#steps [aria-current=step]")).to_have_text("Original")


def test_lasso_rectangle_eraser_and_the_mask(page: AppPage, photo_file: Path, tmp_path: Path) -> None:
    page.drop(photo_file)
    page("#auto").uncheck()
    page.tool("rectangle")
    page.stroke((20.2, 20.2), (39.8, 49.8))
    page.wait_for_steps("Rectangle")
    page.tool("lasso")
    page.stroke((100, 40), (140, 40), (120, 80), (100, 40))
    page.wait_for_steps("Rectangle", "Lasso")
    page.tool("eraser")
    page.set_size(6)
    page.stroke((30, 10), (30, 60))
    page.wait_for_steps("Rectangle", "Lasso", "Eraser")
    page.screenshot("marked")
    page("summary").click()
    mask = pixels_of(page.saved(tmp_path, "#mask-save")) > 127
    expected = np.zeros((128, 160), bool)
    expected[20:50, 20:40] = True
    expected[:, 27:33] = False
    np.testing.assert_array_equal(mask[:, :90], expected[:, :90])
    assert mask[50, 120] and not mask[79, 101]  # noqa: PT018
    page("#invert").click()
    page("#clear").click()
    expect(page("#steps li")).to_have_count(6)
    Photo(expected.astype(np.uint8) * 255).save(tmp_path / "mask.png")
    page.choose("partner", "#mask-file", tmp_path / "mask.png")
    expect(page("#steps li").last).to_have_text("Mask")
    page("#fill").click()
    expect(page("#steps li").last).to_have_text("Remove")
    page("#another").click()
    expect(page("#variant-list button")).to_have_count(2)
    page.wait()
    expect(page("#variant-list [aria-current=true]")).to_have_text("2")
    page("#variant-list button").first.click()
    expect(page("#variant-list [aria-current=true]")).to_have_text("1")
    page.wait()
    result = pixels_of(page.saved(tmp_path))
    np.testing.assert_array_equal(result, psal.inpaint(pixels_of(photo_file), expected, seed=0))


def test_more_has_what_the_commands_take(page: AppPage, photo: NDArray[Any], photo_file: Path, tmp_path: Path) -> None:
    page.drop(photo_file)
    page("#auto").uncheck()
    page("summary").click()
    page("#layers input[value=source]").check(force=True)
    page.tool("rectangle")
    page.stroke((90.2, 0.2), (159.8, 127.8))
    page.wait_for_steps("Rectangle")
    page("#layers input[value=hole]").check(force=True)
    page.stroke((30.2, 40.2), (59.8, 69.8))
    page.wait_for_steps("Rectangle", "Rectangle")
    page("#grow-by").fill("3")
    page("#grow").click()
    page.wait_for_steps("Rectangle", "Rectangle", "Grow 3 px")
    guide = np.ascontiguousarray(photo[:, ::-1])
    Photo(guide).save(tmp_path / "guide.png")
    page.choose("partner", "#guide", tmp_path / "guide.png")
    expect(page("#guide-name")).to_have_text("guide.png")
    page("#feather").fill("5")
    page("#seed").fill("4")
    page("#fill").click()
    page.wait_for_steps("Rectangle", "Rectangle", "Grow 3 px", "Remove")
    hole, source = np.zeros((2, 128, 160), bool)
    hole[40:70, 30:60] = source[:, 90:] = True
    expected = psal.inpaint(photo, hole, grow=3, feather=5, seed=4, source_mask=source, guide=guide)
    np.testing.assert_array_equal(pixels_of(page.saved(tmp_path)), expected)
    page("input[value=outpaint]").check(force=True)  # the seed is for all edits, the rest for this one
    expect(page("#seed")).to_be_visible()
    expect(page("#feather")).to_be_hidden()


def test_the_photograph_is_moved_zoomed_and_fitted(page: AppPage, photo_file: Path) -> None:
    page.drop(photo_file)
    fitted = page.place(0, 0)
    page("#canvas").focus()
    page.page.keyboard.down("Space")
    page.stroke((60, 60), (80, 70))
    page.page.keyboard.up("Space")
    assert np.subtract(page.place(0, 0), fitted) == pytest.approx(
        np.subtract(page.place(20, 10), page.place(0, 0)), abs=0.5
    )
    expect(page("#steps li")).to_have_count(1)  # moving does not paint
    page("#zoom-full").click()
    expect(page("#zoom-value")).to_have_text("100 %")
    assert page.scale() == pytest.approx(1)
    page("#zoom-fit").click()
    assert page.place(0, 0) == pytest.approx(fitted)


def test_unsaved_work_is_warned_of_and_a_sample_is_none(page: AppPage) -> None:
    page.sample()
    dialogs: list[str] = []
    page.page.on("dialog", lambda dialog: dialogs.append(dialog.type))
    page.page.reload()
    page.wait_for_steps("Mask")
    assert dialogs == []
    page("#fill").click()
    page.wait_for_steps("Mask", "Remove")
    page.page.reload()
    page.wait_for_steps("Mask", "Remove")
    assert dialogs == ["beforeunload"]
    page.download()
    expect(page("body")).to_have_attribute("data-state", "ready")
    page.page.wait_for_function("import('/assets/editor.js').then(({ editor }) => editor.state.saved)")
    page.page.reload()
    assert dialogs == ["beforeunload"]


def test_24_megapixels_are_painted_pixel_by_pixel(page: AppPage, large: bytes, tmp_path: Path) -> None:
    (tmp_path / "large.jpg").write_bytes(large)
    page.drop(tmp_path / "large.jpg")
    original = pixels_of(tmp_path / "large.jpg")
    assert page.scale() < 0.25
    x, y = page.place(4001.5, 2502.5)
    page.page.mouse.move(x, y)
    while page.scale() < 8:
        page.page.mouse.wheel(0, -400)
    page.wait()
    for at in ((4001, 2502), (4003, 2500), (3990, 2510)):
        assert page.color(*at) == list(original[at[1], at[0]])
    page("#auto").uncheck()
    page.set_size(3)
    page.stroke((4001.5, 2502.5), (4005.5, 2502.5))
    page.wait_for_steps("Brush")
    page.screenshot("pixels")
    page("summary").click()
    mask = pixels_of(page.saved(tmp_path, "#mask-save")) > 127
    expected = np.zeros_like(mask)
    expected[2501:2504, 4000:4007] = True
    np.testing.assert_array_equal(mask, expected)
    page.page.keyboard.press("0")
    expect(page("#zoom-value")).not_to_have_text("800 %")
    page.wait()


def test_paste_drop_and_a_bad_file(page: AppPage, photo_file: Path) -> None:
    send = """([kind, name, data]) => {
        const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
        const transfer = new DataTransfer();
        transfer.items.add(new File([bytes], name, { type: "image/png" }));
        const options = { bubbles: true, cancelable: true };
        const event = kind === "paste"
            ? new ClipboardEvent("paste", { ...options, clipboardData: transfer })
            : new DragEvent("drop", { ...options, dataTransfer: transfer });
        document.body.dispatchEvent(event);
    }"""
    import base64

    data = base64.b64encode(photo_file.read_bytes()).decode()
    page.page.evaluate(send, ["paste", "image.png", data])
    expect(page("#title")).to_have_text("image.png · 160 × 128")
    page.page.evaluate(send, ["drop", "dropped.png", data])
    expect(page("#title")).to_have_text("dropped.png · 160 × 128")
    page.wait()
    page.page.evaluate(send, ["drop", "letter.png", base64.b64encode(b"Dear all").decode()])
    expect(page.message()).to_contain_text("letter.png is damaged, or not a picture")
    page.screenshot("bad-file")
    expect(page("#title")).to_have_text("dropped.png · 160 × 128")  # the first one stays
    page.set_size(20)
    page.stroke((60, 60), (70, 60))
    page.wait_for_steps("Remove")


def test_the_other_edits_and_a_reload(page: AppPage, photo_file: Path) -> None:
    page.drop(photo_file)
    page("input[value=upscale]").check(force=True)
    page("#scale").fill("1.5")
    page("[data-edit=upscale] .run").click()
    page.wait_for_steps("Upscale")
    expect(page("#title")).to_have_text("my photo.png · 240 × 192")
    page("input[value=colorize]").check(force=True)
    page("[data-edit=colorize] .run").click()
    expect(page.message()).to_contain_text("Choose a reference picture first")
    page.choose("partner", "[data-edit=colorize] .reference", photo_file)
    page("[data-edit=colorize] .run").click()
    page.wait_for_steps("Upscale", "Colorize")
    page.screenshot("colorize")
    page.page.reload()  # which is warned of; the photograph is still there
    page.wait_for_steps("Upscale", "Colorize")


def test_the_original_shows_while_the_button_is_held(page: AppPage, photo_file: Path) -> None:
    page.drop(photo_file)
    page.set_size(30)
    page.stroke((70, 62))
    page.wait_for_steps("Remove")
    button, keyboard, mouse = page("#original"), page.page.keyboard, page.page.mouse
    button.hover()
    mouse.down()
    expect(button).to_have_attribute("aria-pressed", "true")
    mouse.up()
    expect(button).to_have_attribute("aria-pressed", "false")
    button.focus()
    keyboard.down(" ")
    expect(button).to_have_attribute("aria-pressed", "true")
    keyboard.up(" ")
    expect(button).to_have_attribute("aria-pressed", "false")
    expect(page("#steps [aria-current=step]")).to_have_text("Remove")


def test_undo_ends_what_runs(page: AppPage, photo: NDArray[Any], tmp_path: Path) -> None:
    Photo(np.tile(photo, (12, 12, 1))).save(tmp_path / "wide.png")
    page.drop(tmp_path / "wide.png")
    page("input[value=upscale]").check(force=True)
    page("#scale").fill("2.2")
    page("[data-edit=upscale] .run").click()
    expect(page("#stop")).to_be_visible()
    page.page.keyboard.press("Control+z")
    expect(page.message()).to_contain_text("Stopped")
    page.wait_for_steps()


def test_brackets_typed_with_altgr_change_the_brush(page: AppPage, photo_file: Path) -> None:
    page.drop(photo_file)
    page.set_size(20)
    page.page.evaluate(
        """() => dispatchEvent(new KeyboardEvent("keydown", {
            key: "]", ctrlKey: true, altKey: true, modifierAltGraph: true }))"""
    )
    expect(page("#size")).to_have_value("22")
