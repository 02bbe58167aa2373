import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from playwright.sync_api import Browser, ConsoleMessage, Route, sync_playwright

from app.page import CHROMIUM, CHROMIUM_ARGUMENTS, PATIENCE, AppPage
from psal.data.samples import samples
from psal.io.photo import Photo

COMMAND = (sys.executable, "-m", "psal.cli", "app")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "server" in getattr(item, "fixturenames", ()):
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

    def wait_until(self, condition: Callable[[], bool]) -> None:
        """Ask again and again, at the latest until the patience of a page's own waits is at its end."""
        end = time.monotonic() + PATIENCE / 1000
        while not condition():
            assert time.monotonic() < end
            time.sleep(0.05)

    def sessions_files(self) -> list[Path]:
        # Not by rglob, which fails on folders that go meanwhile.
        return [Path(folder, name) for folder, _, names in os.walk(self.folder() / "sessions") for name in names]


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The command, started once for all tests; it says nothing but its address."""
    temporary = tmp_path_factory.mktemp("temporary").resolve()
    environment = os.environ | {"TMPDIR": str(temporary)}
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "env": environment}
    with subprocess.Popen(COMMAND, **pipes) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert "http://127.0.0.1:" in line, process.stderr and process.stderr.read()
        yield Server(line.split()[3], process, temporary)
        process.terminate()
        _, complaints = process.communicate(timeout=30)
        assert "Traceback" not in complaints, complaints


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
        if message.type == "error" and "429" not in message.text:
            errors.append(message.text)

    def open_one(**options: Any) -> AppPage:
        context = browser.new_context(**({"viewport": {"width": 1200, "height": 900}} | options))
        contexts.append(context)
        context.route(lambda url: not url.startswith((server.address, "data:", "blob:")), block)
        page = context.new_page()
        page.on("console", note)
        page.on("pageerror", lambda error: errors.append(str(error)))
        return AppPage(page, server.address).open()

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
    return np.ascontiguousarray(samples()[3].picture[:128, :160])


@pytest.fixture
def photo_file(photo: NDArray[Any], tmp_path: Path) -> Path:
    path = tmp_path / "my photo.png"
    Photo(photo).save(path)
    return path
