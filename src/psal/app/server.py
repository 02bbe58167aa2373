"""Starting, serving and stopping the page."""

import asyncio
import contextlib
import errno
import ipaddress
import logging
import os
import shutil
import socket
import tempfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from psal.app.limits import MAX_CONCURRENT_EDITS, MAX_FILE_BYTES, MEGA
from psal.app.sessions import Sessions
from psal.app.workers import Workers
from psal.errors import UsageError

FIRST_PORT, PORTS_TO_TRY = 7860, 100
SWEEP_SECONDS = 60
PATIENCE_AT_THE_END = 2  # seconds, for connections to close
# Gradio looks at these when it is imported: nothing is reported or asked for elsewhere.
ENVIRONMENT = {
    "GRADIO_ANALYTICS_ENABLED": "False",
    "GRADIO_ANALYTICS_MAX_EVENTS": "1",
    "GRADIO_RUN_HISTORY": "False",
    "GRADIO_MCP_SERVER": "False",
    "HF_HUB_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
}


def is_loopback(host: str) -> bool:
    """Whether only this computer reaches a server that listens there.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def listen(host: str, port: int | None) -> socket.socket:
    """A socket to serve on.

    Args:
        host: name or address.
        port: None takes the first that is free from 7860 on.

    Raises:
        UsageError: if that is not possible; the message names the port or the host.
    """
    try:
        family, _, _, _, address = socket.getaddrinfo(host.strip("[]"), port or 0, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError):
        raise UsageError(f"--host {host} is no address of this computer: leave it out, or give 0.0.0.0") from None
    for tried in [port] if port is not None else range(FIRST_PORT, FIRST_PORT + PORTS_TO_TRY):
        listening = socket.socket(family, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((address[0], tried, *address[2:]))
            listening.listen()
            return listening
        except (OSError, OverflowError) as error:
            listening.close()
            number = getattr(error, "errno", None)
            if number == errno.EADDRINUSE:
                continue
            if number == errno.EADDRNOTAVAIL:
                raise UsageError(f"--host {host} is no address of this computer") from None
            raise UsageError(f"port {tried} cannot be used: {error}: choose another one with --port") from None
    if port is not None:
        raise UsageError(f"port {port} is in use: stop what uses it, or choose another one with --port")
    raise UsageError(f"ports {FIRST_PORT} to {FIRST_PORT + PORTS_TO_TRY - 1} are all in use: choose one with --port")


def address_of(listening: socket.socket, host: str) -> str:
    """What to type into a browser."""
    name = "localhost" if host in ("0.0.0.0", "::", "[::]") else host
    return f"http://{f'[{name}]' if ':' in name.strip('[]') and '[' not in name else name}:{listening.getsockname()[1]}"


def serve(listening: socket.socket, host: str, ready: Callable[[], None]) -> None:
    """Serve the page until ctrl-C.

    Args:
        listening: from :func:`listen`.
        host: that it listens on.
        ready: called when the page can be opened.

    Raises:
        KeyboardInterrupt: when it was stopped, after everything has been cleaned up.
    """
    root = Path(tempfile.mkdtemp(prefix="psal-app-")).resolve()
    workers = Workers(MAX_CONCURRENT_EDITS + 1)  # one more, so that pictures open while others are edited
    try:
        workers.start_one()  # loads while the following does
        os.environ.update(ENVIRONMENT | {"GRADIO_TEMP_DIR": str(root)})
        _run(listening, host, root, workers, ready)
    finally:
        workers.close()
        shutil.rmtree(root, ignore_errors=True)


def _run(listening: socket.socket, host: str, root: Path, workers: Workers, ready: Callable[[], None]) -> None:
    import fastapi
    import gradio as gr
    import uvicorn
    from starlette.routing import Mount

    from psal.app.middleware import Middleware
    from psal.app.page import build_page, page_style
    from psal.app.parts import EDIT_QUEUE

    sessions = Sessions(root / "sessions")
    blocks = build_page(sessions, workers, root)
    port = listening.getsockname()[1]

    @contextlib.asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[None]:
        sweeping = asyncio.create_task(_sweep(sessions))
        ready()
        yield
        sweeping.cancel()

    outer = fastapi.FastAPI(lifespan=lifespan, openapi_url=None, docs_url=None, redoc_url=None)
    gr.mount_gradio_app(
        outer, blocks, path="/", server_name=host, server_port=port, footer_links=[], run_history=False,
        allowed_paths=[], show_error=True, max_file_size=f"{MAX_FILE_BYTES // MEGA}mb", ssr_mode=False, pwa=False,
        mcp_server=False, enable_monitoring=False, root_path="", **page_style(),
    )  # fmt: skip
    served: Any = next(route.app for route in outer.routes if isinstance(route, Mount))
    blocks.has_launched = True  # as Blocks.launch() has it: from here on Gradio too checks where files lie
    hosts = {"127.0.0.1", "localhost", "::1", "[::1]", host.strip("[]")} if is_loopback(host) else None
    guarded = Middleware(outer, sessions=sessions, blocks=blocks, hosts=hosts, port=port, edits=EDIT_QUEUE)

    class Server(uvicorn.Server):
        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # that pages were open is no error
            blocks.close(verbose=False)
            served.stop_event.set()  # ends what would keep connections open
            workers.close()
            shutil.rmtree(root, ignore_errors=True)  # before uvicorn raises the signal again, which may end all
            await super().shutdown(sockets)

    config = uvicorn.Config(
        guarded, log_level="error", access_log=False, lifespan="on", proxy_headers=False, server_header=False,
        timeout_graceful_shutdown=PATIENCE_AT_THE_END,
    )  # fmt: skip
    Server(config).run(sockets=[listening])


async def _sweep(sessions: Sessions) -> None:
    while True:
        await asyncio.sleep(SWEEP_SECONDS)
        await asyncio.to_thread(sessions.sweep)
