"""The command itself: starting, refusing and stopping."""

import os
import signal
import socket
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.conftest import COMMAND

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


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_ctrl_c_stops_with_no_trace_left(host: str, tmp_path: Path) -> None:
    """A page is open and its files are there; a warning is given where others can reach the server."""
    heed = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # a background job would hand down that it is ignored
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    with subprocess.Popen([*COMMAND, "--host", host], preexec_fn=heed, env=environment, **PIPES) as process:
        assert process.stdout is not None
        address = process.stdout.readline().split()[3]
        with httpx.Client(base_url=address, trust_env=False) as client:
            client.get("/").raise_for_status()
            client.post("/gradio_api/upload", files={"files": ("a.png", b"x")}).raise_for_status()
            with client.stream("GET", "/gradio_api/heartbeat/abc") as heartbeat:
                assert heartbeat.status_code == 200
                process.send_signal(signal.SIGINT)
                output, complaints = process.communicate(timeout=60)
    assert (process.returncode, output) == (130, "")
    *warnings, last = complaints.splitlines()
    assert last == "interrupted"
    assert [line.startswith("warning: whoever can reach this computer") for line in warnings] == [True] * (
        host != "127.0.0.1"
    )
    assert list(tmp_path.glob("psal-app-*")) == []


def test_without_gradio_the_extra_is_named() -> None:
    script = "import sys; sys.modules['gradio'] = None; import psal.cli.main; psal.cli.main.main()"
    done = subprocess.run([sys.executable, "-c", script, "app"], **PIPES, timeout=120, check=False)
    assert done.returncode == 1
    assert "pip install 'psal[app]'" in done.stderr
    assert done.stderr.count("\n") == 1


def test_open_shows_the_page_in_the_browser(tmp_path: Path) -> None:
    """A script stands for the browser, and notes the address that it is given."""
    browser, noted = tmp_path / "browser", tmp_path / "address"
    os.mkfifo(noted)
    browser.write_text(f'#!/bin/sh\necho "$1" > {noted}\n')
    browser.chmod(0o755)
    environment = os.environ | {"BROWSER": f"{browser} %s", "TMPDIR": str(tmp_path)}
    with subprocess.Popen([*COMMAND, "--open"], env=environment, **PIPES) as process:
        assert process.stdout is not None
        address = process.stdout.readline().split()[3]
        assert noted.read_text().strip() == address
        process.terminate()
