"""The command itself: starting, refusing and stopping."""

import os
import signal
import socket
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from app.client import Client, png, wait_until
from app.conftest import COMMAND, running

PIPES: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}


def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=120, check=False)


def test_a_port_in_use_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run("--port", str(port))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"error: port {port} is in use: stop what uses it, or choose another one with --port\n"


@pytest.mark.parametrize("host", ["no such name", "192.0.2.1"])
def test_a_host_that_is_not_this_computer_is_named(host: str) -> None:
    done = run("--host", host)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert f"--host {host} is no address of this computer" in done.stderr


@pytest.mark.parametrize(
    ("number", "code", "complaint"),
    [(signal.SIGINT, 130, "interrupted\n"), (signal.SIGTERM, 143, ""), (signal.SIGHUP, 0, "")],
)
def test_a_stopped_server_leaves_no_trace(number: int, code: int, complaint: str, tmp_path: Path, photo: Any) -> None:
    """A page is open and its files are there, also when the terminal is closed (SIGHUP)."""
    heed = partial(signal.signal, number, signal.SIG_DFL)  # a background job would hand down that it is ignored
    with running(tmp_path, *COMMAND, preexec_fn=heed) as server:
        client = Client(server.address)
        client.open(png(photo))
        states = client.states()
        next(states)
        assert server.files()
        workers = server.workers()
        server.process.send_signal(number)
        output, complaints = server.process.communicate(timeout=60)
        assert (server.process.returncode, output, complaints) == (code, "", complaint)
    assert list(tmp_path.glob("psal-app-*")) == []
    assert not [pid for pid in workers if Path(f"/proc/{pid}").exists()]


def test_a_start_removes_what_a_killed_server_left_and_nothing_else(tmp_path: Path, photo: Any) -> None:
    with running(tmp_path) as killed:
        client = Client(killed.address)
        client.open(png(photo))
        [left] = tmp_path.glob("psal-app-*")
        killed.process.kill()
        killed.process.wait()
    assert left.exists()
    (tmp_path / "psal-app-of-somebody").mkdir()  # without a lock: not a server's
    with running(tmp_path) as first:
        assert not left.exists()
        with running(tmp_path) as second:
            assert len(list(tmp_path.glob("psal-app-*"))) == 3
            # The page of the killed server: its photograph is gone, and it is told so.
            client.http.base_url = second.address
            assert client.get().json() == {"error": "this page has expired: load it again"}
            assert client.get("/events").status_code == 403
        assert first.process.poll() is None
    assert [path.name for path in tmp_path.glob("psal-app-*")] == ["psal-app-of-somebody"]


def test_without_starlette_the_extra_is_named() -> None:
    script = "import sys; sys.modules['uvicorn'] = None; import psal.cli.main; psal.cli.main.main()"
    done = subprocess.run([sys.executable, "-c", script, "app"], **PIPES, timeout=120, check=False)
    assert done.returncode == 1
    assert "pip install 'psal[app]'" in done.stderr
    assert done.stderr.count("\n") == 1


def test_open_shows_the_page_in_the_browser(tmp_path: Path) -> None:
    """A script stands for the browser, and notes the address that it is given."""
    browser, noted = tmp_path / "browser", tmp_path / "address"
    browser.write_text(f'#!/bin/sh\necho "$1" > {noted}.new\nmv {noted}.new {noted}\n')
    browser.chmod(0o755)
    environment = os.environ | {"BROWSER": f"{browser} %s", "TMPDIR": str(tmp_path)}
    with subprocess.Popen([*COMMAND, "--open"], env=environment, **PIPES) as process:
        assert process.stdout is not None
        try:
            address = process.stdout.readline().split()[3]
            wait_until(noted.exists)
            assert noted.read_text().strip() == address
        finally:
            process.terminate()


def test_the_server_itself_does_not_load_torch() -> None:
    """Only the workers need it; the page is there a second sooner."""
    script = "import sys, psal.app.application, psal.app.server; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], timeout=120, check=False).returncode == 0
