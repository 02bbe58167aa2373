"""The page's server and its clients, as far as the benchmark of the page needs them. All selectors are here."""

import contextlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
from playwright.sync_api import Browser, Page, expect

COMMAND = (sys.executable, "-m", "psal.cli", "app")
CHROMIUM = "/usr/bin/chromium"
CHROMIUM_ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking")
TIMEOUT = 120_000  # milliseconds

# Releases the brush after a stroke, and waits until the filled pixels are on the screen.
FILL = """async () => {
    const { editor } = await import("/assets/editor.js");
    const canvas = document.getElementById("canvas"), frame = () => new Promise(requestAnimationFrame);
    const before = editor.state.version, start = performance.now();
    editor.finish(false);
    while (editor.state.version === before || editor.state.job || !canvas.dataset.complete) await frame();
    return (performance.now() - start) / 1000;
}"""
BEGIN = """async (points) => {
    const { editor } = await import("/assets/editor.js");
    editor.begin(points[0]);
    for (const point of points) editor.extend(point);
}"""


class Server(NamedTuple):
    """A running ``psal app``: its URL and process id."""

    url: str
    pid: int


@contextlib.contextmanager
def running_server() -> Iterator[Server]:
    """Start ``psal app``, and stop it at the end."""
    with subprocess.Popen(COMMAND, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            found = re.search(r"http\S+", process.stdout.readline())
            if found is None:
                sys.exit("error: psal app did not start")
            yield Server(found[0], process.pid)
        finally:
            process.terminate()


def open_page(browser: Browser, url: str) -> Page:
    """Open the page and wait for its buttons."""
    expect.set_options(timeout=TIMEOUT)
    page = browser.new_page()
    page.set_default_timeout(TIMEOUT)
    page.goto(url)
    expect(page.locator("#choose")).to_be_visible()
    return page


def open_photo(page: Page, path: Path) -> None:
    """Open a photograph and wait until it is on the screen."""
    with page.expect_file_chooser() as chooser:
        page.locator("#choose").click()
    chooser.value.set_files(path)
    expect(page.locator("#title")).to_contain_text(path.name)
    expect(page.locator("#canvas[data-complete*='/']")).to_be_visible()


def seconds_to_fill(page: Page, points: list[list[float]], size: int) -> float:
    """From releasing the brush to the filled pixels on the screen, as the browser measures it; it is undone then."""
    page.locator("#size").fill(str(size))
    page.locator("#size").press("Tab")
    page.evaluate(BEGIN, points)
    seconds: float = page.evaluate(FILL)
    page.locator("#undo").click()
    expect(page.locator("#steps [aria-current=step]")).to_have_text("Original")
    return seconds


class Weight(NamedTuple):
    """What the browser loads until the page is usable."""

    requests: int
    bytes: int


def weight(browser: Browser, url: str) -> Weight:
    """Count requests and bytes until the page is usable."""
    page = browser.new_page()
    answers: list[Any] = []
    page.on("response", lambda answer: answers.append(answer))
    page.goto(url)
    page.wait_for_load_state("networkidle")
    found = Weight(len(answers), sum(len(answer.body()) for answer in answers))
    page.close()
    return found


class Session:
    """A session on the server without a browser.

    Args:
        url: of the server.
    """

    def __init__(self, url: str) -> None:
        self.http = httpx.Client(base_url=url, timeout=60, trust_env=False)
        self._id = ""

    def open_sample(self) -> None:
        """Open the sample photograph, with its mask."""
        self._id = self.http.post("/samples/inpaint").raise_for_status().json()["id"]

    def open(self, content: bytes) -> None:
        """Open a photograph."""
        answer = self.http.post("/photos", params={"name": "photo.png"}, content=content)
        self._id = answer.raise_for_status().json()["id"]

    def fill(self, seed: int) -> dict[str, Any]:
        """Fill the masked pixels; returns the state after it."""
        return list(self.states("/fill", json={"seed": seed}))[-1]

    def states(self, path: str, **options: Any) -> Iterator[dict[str, Any]]:
        """Start an edit; yields the states of the photograph until it is done."""
        self.http.post(f"/photos/{self._id}{path}", **options).raise_for_status()
        with self.http.stream("GET", f"/photos/{self._id}/events") as lines:
            for line in lines.iter_lines():
                if line.startswith("data: "):
                    state: dict[str, Any] = json.loads(line.removeprefix("data: "))
                    yield state
                    if state["job"] is None:
                        return
        raise RuntimeError("the server closed the connection without an answer")

    def undo(self) -> None:
        """Take the fill back, so that the mask is there again."""
        self.http.post(f"/photos/{self._id}/position", json={"position": 1}).raise_for_status()
