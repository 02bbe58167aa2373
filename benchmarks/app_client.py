"""The page's server and its clients, as far as the benchmark of the page needs them. All element ids are here."""

import contextlib
import json
import re
import secrets
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
TIMEOUT = 60_000  # milliseconds
TAB = "inpaint"  # prefix of the tab's element ids
DONE = "Done in"  # in the message after a fill

FILL_AGAIN = f"""async () => {{
    const frame = () => new Promise(requestAnimationFrame);
    const images = () => [...document.querySelectorAll("#{TAB}-slider img")];
    const shown = () => images().map((image) => image.src).join();
    const text = () => document.querySelector("#{TAB}-message .said")?.textContent;
    const [message, result, start] = [text(), shown(), performance.now()];
    document.querySelector("#{TAB}-again").click();
    while ((text() ?? message) === message || shown() === result || !images().every((each) => each.complete))
        await frame();
    return (performance.now() - start) / 1000;
}}"""


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
    expect(page.locator(f"#{TAB}-run")).to_be_visible()
    return page


def fill_sample(page: Page) -> None:
    """Load the sample photograph with its mask and fill it once."""
    page.locator(f"#{TAB}-sample").click()
    preview = page.locator(f"#{TAB}-photo .picker-image")
    expect(preview).to_be_visible()
    ready = f"[data-ready='{preview.get_attribute('src')}']"
    expect(page.locator(f"#{TAB}-painter {ready}, #{TAB}-painter{ready}")).to_have_count(1)
    page.locator(f"#{TAB}-run").click()
    expect(page.locator(f"#{TAB}-message")).to_contain_text(DONE)


def seconds_to_fill_again(page: Page) -> float:
    """From the click to the new message and the loaded result, as the browser measures it."""
    seconds: float = page.evaluate(FILL_AGAIN)
    return seconds


class Session:
    """A session on the server without a browser.

    Args:
        url: of the server.
    """

    def __init__(self, url: str) -> None:
        self.http = httpx.Client(base_url=url, timeout=60, trust_env=False)
        self._id = secrets.token_hex(5)
        self.http.get("/").raise_for_status()
        self._config: dict[str, Any] = self.http.get("/config").json()

    @contextlib.contextmanager
    def heartbeat(self) -> Iterator[None]:
        """Keep the session alive, as a browser does."""
        with self.http.stream("GET", f"/gradio_api/heartbeat/{self._id}"):
            yield

    def open_photo(self, path: Path) -> Any:
        """Upload the photograph to fill; returns the value of its field."""
        return self._event("photo", "upload", [self._upload(path)])[1]

    def open_mask(self, path: Path, photo: Any) -> Any:
        """Upload the mask; returns the value of its field."""
        return self._event("mask", "upload", [self._upload(path), photo])[1]

    def fill(self, photo: Any, mask: Any, seed: int) -> str:
        """Fill the masked pixels; returns the message."""
        return str(self._event("run", "click", [photo, mask, "", seed, None])[0])

    def _upload(self, path: Path) -> dict[str, Any]:
        response = self.http.post("/gradio_api/upload", files={"files": (path.name, path.read_bytes())})
        [stored] = response.raise_for_status().json()
        return {"path": stored, "name": path.name}

    def _event(self, element: str, kind: str, data: list[Any]) -> Any:
        """Trigger an event of an element and wait for its output."""
        index = self._event_index(f"{TAB}-{element}", kind)
        request = {"data": data, "fn_index": index, "session_hash": self._id}
        joined = self.http.post("/gradio_api/queue/join", json=request).raise_for_status().json()
        with self.http.stream("GET", "/gradio_api/queue/data", params={"session_hash": self._id}) as lines:
            for line in lines.iter_lines():
                message = json.loads(line.removeprefix("data:")) if line.startswith("data:") else {}
                if message.get("msg") == "process_completed" and message["event_id"] == joined["event_id"]:
                    if not message["success"]:
                        raise RuntimeError(str(message["output"]))
                    return message["output"]["data"]
        raise RuntimeError("the server closed the connection without an answer")

    def _event_index(self, element: str, kind: str) -> int:
        [component] = [x["id"] for x in self._config["components"] if x["props"].get("elem_id") == element]
        return int(next(x["id"] for x in self._config["dependencies"] if [component, kind] in x["targets"]))
