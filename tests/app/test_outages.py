"""An open page whose server cannot be reached for a while, or has been started again."""

import contextlib
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from playwright.sync_api import Browser, expect

from app.conftest import COMMAND, Server, running
from app.page import AppPage
from psal.io.photo import Photo


class Line:
    """A SOCKS proxy between browser and server that can be cut."""

    def __init__(self, address: str) -> None:
        host, port = address.removeprefix("http://").strip("/").split(":")
        self._server = host, int(port)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.address = f"socks5://127.0.0.1:{self._listening.getsockname()[1]}"
        self._ends: list[socket.socket] = []
        self._is_cut = False
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """End all connections, and refuse new ones."""
        self._is_cut = True
        for end in self._ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def mend(self) -> None:
        self._is_cut = False

    def close(self) -> None:
        self.cut()
        self._listening.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                browser, _ = self._listening.accept()
                if self._is_cut:
                    browser.close()
                    continue
                browser.recv(262)
                browser.sendall(b"\5\0")  # without a password
                browser.recv(262)
                browser.sendall(b"\5\0\0\1" + bytes(6))  # connected
                server = socket.create_connection(self._server)
                self._ends += [browser, server]
                for ends in ((browser, server), (server, browser)):
                    threading.Thread(target=_pump, args=ends, daemon=True).start()


def _pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while piece := source.recv(65536):
            target.sendall(piece)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def line(server: Server) -> Iterator[Line]:
    made = Line(server.address)
    yield made
    made.close()


def test_a_cut_connection_is_taken_up_again(
    line: Line, server: Server, browser: Browser, photo: NDArray[Any], tmp_path: Path
) -> None:
    Photo(np.tile(photo, (12, 12, 1))).save(tmp_path / "wide.png")  # not all of it is loaded at once
    with contextlib.closing(browser.new_context(proxy={"server": line.address})) as context:
        page = AppPage(context.new_page(), server.address).open()
        page.drop(tmp_path / "wide.png")
        line.cut()
        expect(page.message()).to_have_text("The connection is lost. Trying again …")
        page("#zoom-full").click()
        stroke = (950, 760), (970, 770)
        page.stroke(*stroke)
        expect(page.message().filter(has_text="does not answer")).to_be_visible()
        expect(page("#canvas")).to_have_attribute("data-complete", "")
        line.mend()
        expect(page.message().filter(has_text="connection is lost")).to_be_hidden()
        page.wait()
        page.stroke(*stroke)
        page.wait_for_steps("Remove")


def test_after_a_restart_the_page_says_so(browser: Browser, tmp_path: Path, photo_file: Path) -> None:
    with contextlib.closing(browser.new_context()) as context:
        with running(tmp_path) as first:
            page = AppPage(context.new_page(), first.address).open()
            page.drop(photo_file)
            first.process.terminate()
            first.process.wait()
        expect(page.message()).to_contain_text("The connection is lost")
        port = first.address.rsplit(":", 1)[1].strip("/")
        with running(tmp_path, *COMMAND, "--port", port):
            expect(page.message()).to_contain_text("the photograph is no longer there")
            page.screenshot("expired")
            page.page.get_by_role("button", name="Load again").click()
            expect(page("#choose")).to_be_visible()
