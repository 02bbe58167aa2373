"""The page as a session handles it. What depends on Gradio's version, and every selector, is in this file."""

from pathlib import Path
from typing import Any

from playwright.sync_api import Download, Locator, Page, expect

CHROMIUM = "/usr/bin/chromium"
CHROMIUM_ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
PATIENCE = 60_000  # milliseconds; a busy machine is no failure
TABS = {
    "inpaint": "Inpaint",
    "colorize": "Colorize",
    "reconstruct": "Reconstruct",
    "upscale": "Upscale",
    "inside": "Look inside",
}

TORN_WORDS = """() => {
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), torn = [];
  while (texts.nextNode()) {
    const text = texts.currentNode, label = text.parentElement.closest("label, button");
    if (!label || !label.checkVisibility({ visibilityProperty: true })) continue;
    for (const word of text.data.matchAll(/\\S+/g)) {
      const range = document.createRange();
      range.setStart(text, word.index);
      range.setEnd(text, word.index + word[0].length);
      const lines = [...range.getClientRects()].filter((line) => line.width > 1);
      const right = label.getBoundingClientRect().right + 1;
      if (lines.length > 1 || lines.some((line) => line.right > right)) torn.push(word[0]);
    }
  }
  return torn;
}"""


class AppPage:
    """One open page.

    Args:
        page: of Playwright.
        address: of the server.
    """

    def __init__(self, page: Page, address: str) -> None:
        self.page, self.address = page, address
        page.set_default_timeout(PATIENCE)
        expect.set_options(timeout=PATIENCE)

    def open(self) -> "AppPage":
        self.page.goto(self.address)
        expect(self.button("inpaint", "run")).to_be_visible()
        return self

    def go_to(self, tab: str) -> None:
        self.page.get_by_role("tab", name=TABS[tab], exact=True).click()
        expect(self.button(tab, "run")).to_be_visible()

    def tab(self, tab: str) -> Locator:
        return self.page.get_by_role("tab", name=TABS[tab], exact=True)

    def button(self, tab: str, name: str) -> Locator:
        return self.page.locator(f"#{tab}-{name}")

    def message(self, tab: str) -> Locator:
        """The line of messages; waiting and progress show on it too."""
        return self.page.locator(f"#{tab}-message")

    def opening_message(self, tab: str) -> Locator:
        """Where problems with a dropped picture are told."""
        return self.page.locator(f"#{tab}-message" if tab in ("inpaint", "inside") else f"#{tab}-opening")

    def toast(self) -> Locator:
        return self.page.locator(".toast-body")

    def drop(self, tab: str, role: str, path: Path) -> None:
        """Choose a file and wait for its preview."""
        self.choose(tab, role, path)
        expect(self.preview(tab, role)).to_be_visible()
        expect(self.picture_name(tab, role)).to_contain_text(path.name)

    def choose(self, tab: str, role: str, path: Path) -> None:
        self.page.locator(f"#{tab}-{role} input[type=file]").set_input_files(path)

    def preview(self, tab: str, role: str) -> Locator:
        return self.page.locator(f"#{tab}-{role} .picker-image")

    def picture_name(self, tab: str, role: str) -> Locator:
        return self.page.locator(f"#{tab}-{role} .picker-name")

    def put_sample(self, tab: str) -> None:
        self.button(tab, "sample").click()
        expect(self.picture_name(tab, "photo")).to_contain_text("_photo.png")
        expect(self.preview(tab, "photo")).to_be_visible()

    def set_seed(self, tab: str, seed: int) -> None:
        self.page.locator(f"#{tab}-seed input").fill(str(seed))

    def seed(self, tab: str) -> int:
        return int(self.page.locator(f"#{tab}-seed input").input_value())

    def set_number(self, tab: str, name: str, value: float) -> None:
        field = self.page.locator(f"#{tab}-{name} input[type=number]")
        field.fill(str(value))
        field.press("Tab")

    def clear_number(self, tab: str, name: str) -> None:
        field = self.page.locator(f"#{tab}-{name} input[type=number]")
        field.fill("")
        field.press("Tab")

    def check(self, tab: str, name: str) -> None:
        self.page.locator(f"#{tab}-{name} input[type=checkbox]").check()

    def torn_words(self) -> list[str]:
        """Words in sight that are broken within a word, or cut off by what they stand in."""
        found: list[str] = self.page.evaluate(TORN_WORDS)
        return found

    def canvas(self) -> Locator:
        return self.page.locator("#inpaint-painter .painter-canvas")

    def wait_for_canvas(self) -> None:
        """Until the preview is on the canvas, with a mask if there is one."""
        expect(self.canvas()).to_be_visible()
        preview = self.preview("inpaint", "photo").get_attribute("src")
        expect(
            self.page.locator(f"#inpaint-painter [data-ready='{preview}'], #inpaint-painter[data-ready='{preview}']")
        ).to_have_count(1)

    def stroke(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        """Paint a line between two places, each as shares of width and height."""
        self.canvas().scroll_into_view_if_needed()
        box = self.canvas().bounding_box()
        assert box is not None
        (x, y), (to_x, to_y) = ((box["x"] + u * box["width"], box["y"] + v * box["height"]) for u, v in (start, end))
        self.page.mouse.move(x, y)
        self.page.mouse.down()
        self.page.mouse.move(to_x, to_y, steps=8)
        self.page.mouse.up()

    def painting_tool(self, name: str) -> Locator:
        return self.page.locator(f"#inpaint-painter .painter-{name}")

    def set_brush(self, size: int) -> None:
        self.painting_tool("size").fill(str(size))

    def painted_pixels(self) -> int:
        """How many pixels of the canvas are in the hole."""
        count: int = self.page.evaluate(
            """() => {
                const canvas = document.querySelector("#inpaint-painter .painter-canvas");
                const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
                let count = 0;
                for (let at = 3; at < data.length; at += 4) count += data[at] > 127;
                return count;
            }"""
        )
        return count

    def run(self, tab: str, done: str, name: str = "run") -> None:
        """Click a button and wait for the message that the job is done."""
        before = self.message(tab).inner_text()
        self.button(tab, name).click()
        expect(self.message(tab)).not_to_have_text(before)
        expect(self.message(tab)).to_contain_text(done)

    def slider_pictures(self, tab: str) -> Locator:
        return self.page.locator(f"#{tab}-slider img")

    def picture(self, tab: str, name: str) -> Locator:
        return self.page.locator(f"#{tab}-{name} img")

    def click_picture(self, tab: str, name: str, u: float, v: float) -> None:
        """Click a place of a picture, as shares of its width and height."""
        picture = self.picture(tab, name).first
        picture.scroll_into_view_if_needed()
        box = picture.bounding_box()
        assert box is not None
        # A picture is fitted into its box, with room at two sides.
        width, height = picture.evaluate("image => [image.naturalWidth, image.naturalHeight]")
        scale = min(box["width"] / width, box["height"] / height)
        x = (box["width"] - scale * width) / 2 + (u * width + 0.5) * scale
        y = (box["height"] - scale * height) / 2 + (v * height + 0.5) * scale
        picture.click(position={"x": x, "y": y})

    def table(self) -> Locator:
        return self.page.locator("#inside-table")

    def download(self, tab: str, name: str) -> Download:
        expect(self.button(tab, name)).to_be_enabled()
        with self.page.expect_download() as started:
            self.button(tab, name).click()
        return started.value

    def focused(self) -> Any:
        """Id of the part of the first tab that has the focus."""
        return self.page.evaluate("() => document.activeElement?.closest('[id^=inpaint-]')?.id")

    def scrolls_sideways(self) -> bool:
        wide: bool = self.page.evaluate(
            "() => document.documentElement.scrollWidth > document.documentElement.clientWidth"
        )
        return wide

    def screenshot(self, name: str, **options: Any) -> None:
        folder = Path("build/screenshots")
        folder.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=folder / f"{name}.png", **options)
