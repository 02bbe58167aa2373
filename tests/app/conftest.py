import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from playwright.sync_api import Browser, ConsoleMessage, Route, sync_playwright

from app.client import Client
from app.page import CHROMIUM, CHROMIUM_ARGUMENTS, AppPage
from psal.data.samples import samples
from psal.io.photo import Photo

COMMAND = (sys.executable, "-m", "psal.cli", "app")
START = "import sys; from psal.app.server import listen, serve; from psal.app.limits import Timeouts; "


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if {"server", "browser"} & set(getattr(item, "fixturenames", ())):
            item.add_marker("page")


@dataclass
class Server:
    """A running ``psal app``: its address, its process, and the folder of its temporary files."""

    address: str
    process: "subprocess.Popen[str]"
    temporary: Path

    def folder(self) -> Path:
        [found] = self.temporary.glob("psal-app-*")
        return found

    def files(self) -> list[Path]:
        # Not by rglob, which fails on folders that go meanwhile.
        return [Path(folder, name) for folder, _, names in os.walk(self.folder() / "sessions") for name in names]

    def workers(self) -> list[int]:
        """Process ids of its workers."""
        listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(self.process.pid)], capture_output=True, text=True)
        return [int(line) for line in listed.stdout.split()]


@contextmanager
def running(temporary: Path, *command: str, **options: Any) -> Iterator[Server]:
    """A server; the line that it prints tells its address."""
    environment = os.environ | {"TMPDIR": str(temporary)}
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "env": environment}
    with subprocess.Popen(command or COMMAND, **(pipes | options)) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert "http://" in line, process.stderr and process.stderr.read()
        address = next(word for word in line.split() if word.startswith("http"))
        try:
            yield Server(address, process, temporary)
        finally:
            if process.poll() is None:
                process.terminate()
                _, complaints = process.communicate(timeout=120)
                assert "Traceback" not in complaints, complaints


def with_timeouts(**seconds: float) -> tuple[str, ...]:
    """Command of a server that waits less long than usual."""
    given = ", ".join(f"{name}={value}" for name, value in seconds.items())
    say = "lambda address: print(address, flush=True)"
    return sys.executable, "-c", f"{START} serve(listen('127.0.0.1', None), '127.0.0.1', {say}, Timeouts({given}))"


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The command, started once for all tests."""
    with running(tmp_path_factory.mktemp("temporary").resolve()) as started:
        yield started


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    opened = Client(server.address)
    yield opened
    opened.http.close()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    if shutil.which(CHROMIUM) is None:
        pytest.fail(f"the tests of the page need Debian's chromium at {CHROMIUM}: apt-get install chromium")
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=CHROMIUM, args=list(CHROMIUM_ARGUMENTS))


OpenPage = Callable[..., AppPage]


@pytest.fixture
def open_page(browser: Browser, server: Server) -> Iterator[OpenPage]:
    """Opens pages, each for a session of its own. All other addresses are blocked, and asking for one fails the test,
    as does an error in the page's console."""
    asked_for: list[str] = []
    errors: list[str] = []
    contexts = []

    def block(route: Route) -> None:
        asked_for.append(route.request.url)
        route.abort()

    def note(message: ConsoleMessage) -> None:
        # What the server refuses, the browser notes too; tests of refusals look at the refusal itself.
        refused = "the server responded with a status of 4", "ERR_INTERNET_DISCONNECTED"
        if message.type == "error" and not any(words in message.text for words in refused):
            errors.append(message.text)

    def open_one(path: str = "", **options: Any) -> AppPage:
        context = browser.new_context(**({"viewport": {"width": 1200, "height": 800}} | options))
        contexts.append(context)
        context.route(lambda url: not url.startswith((server.address, "data:", "blob:")), block)
        page = context.new_page()
        page.on("console", note)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("dialog", lambda dialog: dialog.accept())
        return AppPage(page, server.address).open(path)

    yield open_one
    for context in contexts:
        context.close()
    assert asked_for == []
    assert errors == []


@pytest.fixture
def page(open_page: OpenPage) -> AppPage:
    return open_page()


@pytest.fixture(scope="session")
def photo() -> NDArray[Any]:
    """A photograph of 160 × 128 pixels, uint8 ``(H, W, 3)``."""
    return np.ascontiguousarray(next(x for x in samples() if x.edit == "upscale").picture[:128, :160])


@pytest.fixture
def photo_file(photo: NDArray[Any], tmp_path: Path) -> Path:
    path = tmp_path / "my photo.png"
    Photo(photo).save(path)
    return path


@pytest.fixture(scope="session")
def large(photo: NDArray[Any]) -> bytes:
    """A JPEG of 24 megapixels."""
    buffer = BytesIO()
    Image.fromarray(photo).resize((6000, 4000)).save(buffer, "JPEG", quality=85)
    return buffer.getvalue()
