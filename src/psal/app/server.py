"""Starting, serving and stopping the page."""

import errno
import logging
import signal
import socket
import tempfile
from collections.abc import Callable
from typing import Any

from psal.app.limits import Timeouts
from psal.app.storage import temporary_folder
from psal.errors import UsageError

FIRST_PORT, PORTS_TO_TRY = 7860, 100
LOG_FORMAT = "%(levelname)s: %(message)s"


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


def address_of(listening: socket.socket, host: str, token: str | None) -> str:
    """What to type into a browser; with the token, if there is one."""
    name = "localhost" if host in ("0.0.0.0", "::", "[::]") else host
    name = f"[{name}]" if ":" in name and "[" not in name else name
    return f"http://{name}:{listening.getsockname()[1]}/" + (f"?token={token}" if token else "")


def serve(listening: socket.socket, host: str, ready: Callable[[str], None], timeouts: Timeouts | None = None) -> None:
    """Serve the page until ctrl-C, SIGTERM or SIGHUP.

    Args:
        listening: from :func:`listen`.
        host: that it listens on.
        ready: called with the address when the page can be opened.
        timeouts: other ones than usual.

    Raises:
        KeyboardInterrupt: when it was stopped by ctrl-C, after everything has been cleaned up.
    """
    with temporary_folder() as root:
        tempfile.tempdir = str(root)  # parts of forms go there too
        _run(listening, host, root, ready, timeouts or Timeouts())


def _end(number: int, frame: Any) -> None:
    raise SystemExit(128 + number)


def _run(listening: socket.socket, host: str, root: Any, ready: Callable[[str], None], timeouts: Timeouts) -> None:
    import uvicorn

    from psal.app.access import Access
    from psal.app.application import build_application
    from psal.app.connection import protocol_with_timeout
    from psal.app.service import Service

    logging.basicConfig(format=LOG_FORMAT, level=logging.WARNING)
    access = Access(host, listening.getsockname()[1])
    service = Service(root, access, timeouts)
    service.workers.start_one()  # loads while the first page is opened

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            ready(address_of(listening, host, access.token))

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # that pages were open is no error
            service.close()
            await super().shutdown(sockets)

    config = uvicorn.Config(
        build_application(service), log_config=None, log_level="error", access_log=False, lifespan="on",
        proxy_headers=False, server_header=False, ws="none", http=protocol_with_timeout(timeouts.request),
        timeout_graceful_shutdown=int(timeouts.close),
    )  # fmt: skip
    server = Server(config)
    try:
        signal.signal(signal.SIGHUP, server.handle_exit)  # the terminal was closed
        signal.signal(signal.SIGTERM, _end)  # uvicorn raises it again when it has stopped
        server.run(sockets=[listening])
    finally:
        service.close()
