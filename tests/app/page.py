"""The page as a person handles it. Every selector is in this file."""

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
SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"


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

    def open(self, path: str = "") -> "AppPage":
        self.page.goto(self.address + path)
        return self

    def __call__(self, selector: str) -> Locator:
        return self.page.locator(selector)

    def drop(self, path: Path) -> None:
        """Open a file and wait until it is on the canvas."""
        self.choose("file", "#choose" if self("#choose").is_visible() else "#open", path)
        expect(self("#title")).to_contain_text(path.name)
        self.wait()

    def choose(self, field: str, button: str, *paths: Path) -> None:
        with self.page.expect_file_chooser() as chooser:
            self(button).click()
        chooser.value.set_files([str(path) for path in paths])

    def sample(self) -> None:
        self("#sample").click()
        expect(self("#title")).to_contain_text("inpaint.png")
        self.wait()

    def wait(self) -> None:
        """Until no edit runs and everything in sight is drawn."""
        expect(self("body")).to_have_attribute("data-state", "ready")
        expect(self("#progress")).to_be_hidden()
        expect(self("#canvas")).not_to_have_attribute("data-complete", "")

    def wait_for_steps(self, *labels: str) -> None:
        expect(self("#steps li")).to_have_text(["Original", *labels])
        self.wait()

    def show_tools(self) -> None:
        """Open the sheet, where there is one."""
        if self("#panel-open").is_visible():
            self("#panel-open").click()
            expect(self("#edits")).to_be_in_viewport(ratio=1)  # it slides in

    def message(self) -> Locator:
        return self(".message")

    def place(self, x: float, y: float) -> tuple[float, float]:
        """Where a pixel of the photograph is on the screen."""
        box = self("#canvas").bounding_box()
        view: dict[str, float] = self.page.evaluate(
            "async () => { const { editor } = await import('/assets/editor.js'); return { ...editor.view }; }"
        )
        assert box is not None
        return box["x"] + view["x"] + x * view["scale"], box["y"] + view["y"] + y * view["scale"]

    def stroke(self, *points: tuple[float, float], release: bool = True) -> None:
        """Paint through points of the photograph."""
        first, *rest = [self.place(*point) for point in points]
        self.page.mouse.move(*first)
        self.page.mouse.down()
        for x, y in rest or [first]:
            self.page.mouse.move(x, y, steps=4)
        if release:
            self.page.mouse.up()

    def set_size(self, size: int) -> None:
        self("#size").fill(str(size))
        self("#size").press("Tab")

    def tool(self, name: str) -> None:
        self(f"[data-tool={name}]").click()

    def color(self, x: int, y: int) -> list[int]:
        """Color of the canvas where a pixel of the photograph is shown."""
        left, top = self.place(x + 0.5, y + 0.5)
        found: list[int] = self.page.evaluate(
            """([x, y]) => {
                const canvas = document.getElementById("canvas"), box = canvas.getBoundingClientRect();
                const ratio = canvas.width / box.width;
                const [left, top] = [(x - box.left) * ratio, (y - box.top) * ratio];
                return [...canvas.getContext("2d").getImageData(left, top, 1, 1).data];
            }""",
            [left, top],
        )
        return found[:3]

    def scale(self) -> float:
        """Pixels of the screen for one of the photograph."""
        return self.place(1, 0)[0] - self.place(0, 0)[0]

    def download(self, button: str = "#download") -> Download:
        with self.page.expect_download() as download:
            self(button).click()
        return download.value

    def saved(self, folder: Path, button: str = "#download") -> Path:
        download = self.download(button)
        path = folder / download.suggested_filename
        download.save_as(path)
        return path

    def scrolls_sideways(self) -> bool:
        found: bool = self.page.evaluate("() => document.documentElement.scrollWidth > innerWidth")
        return found

    def focused(self) -> str:
        found: str = self.page.evaluate(
            "() => { const { id, dataset, value } = document.activeElement; return id || dataset.tool || value || ''; }"
        )
        return found

    def screenshot(self, name: str, **options: Any) -> None:
        """Keep a picture to look at."""
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=SCREENSHOTS / f"{name}.png", **options)
