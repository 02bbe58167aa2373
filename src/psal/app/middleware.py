"""The outermost layer of the server: access, limits of a body in bytes and time, headers of every answer."""

import asyncio
import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from psal.app.access import Access
from psal.app.limits import MAX_FILE_BYTES, MEGA, Timeouts
from psal.app.refusals import RefusedError, refusal

MAX_FORM_BYTES = 4 * MAX_FILE_BYTES + MEGA  # four files of the API, and what is around them
TOO_LARGE = f"a file may have at most {MAX_FILE_BYTES / MEGA:.0f} MB: make it smaller"
HEADERS = {
    # The browser itself refuses to fetch anything from elsewhere, and scripts other than the files of the page.
    b"content-security-policy": (
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
        b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    b"referrer-policy": b"no-referrer",
    b"x-content-type-options": b"nosniff",
    b"cross-origin-resource-policy": b"same-origin",
    b"cross-origin-opener-policy": b"same-origin",
}


class Middleware:
    """Checks every request before a route sees it.

    Args:
        app: the routes.
        access: who may ask.
        timeouts: how long a request may take to arrive.
    """

    def __init__(self, app: ASGIApp, access: Access, timeouts: Timeouts) -> None:
        self._app, self._access, self._timeouts = app, access, timeouts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await self._app(scope, receive, send)
        if scope["type"] != "http":
            return await send({"type": "websocket.close", "code": 1008})  # nothing here speaks through web sockets
        started = finished = False

        async def send_more(message: Message) -> None:
            nonlocal started, finished
            if message["type"] == "http.response.start":
                started = True
                message["headers"] = _with_headers(message.get("headers", []))
            finished = message["type"] == "http.response.body" and not message.get("more_body", False)
            await send(message)

        try:
            answer = self._access.check(scope)
            most = MAX_FORM_BYTES if scope["path"].startswith("/api/") else MAX_FILE_BYTES
            _check_length(scope, most)
            await (answer or self._app)(scope, self._limited(receive, most), send_more)
        except Exception as error:
            if finished:  # Starlette raises again what it has answered
                return None
            if started:  # too late for an answer
                raise
            await refusal(error, scope["method"], scope["path"])(scope, receive, send_more)
        return None

    def _limited(self, receive: Receive, most: int) -> Receive:
        """The body as it comes, as long as it is neither too long nor too slow; a header's length may be a lie."""
        left, complete = most, False
        end = time.monotonic() + self._timeouts.body

        async def receive_some() -> Message:
            nonlocal left, complete
            if complete:
                return await receive()  # until the client hangs up
            try:
                patience = min(self._timeouts.request, end - time.monotonic())
                message = await asyncio.wait_for(receive(), max(patience, 0))
            except TimeoutError:
                raise RefusedError(408, "the request did not arrive in time: send it again") from None
            left -= len(message.get("body", b""))
            complete = message["type"] != "http.request" or not message.get("more_body", False)
            if left < 0:
                raise RefusedError(413, TOO_LARGE)
            return message

        return receive_some


def _check_length(scope: Scope, most: int) -> None:
    for name, value in scope["headers"]:
        if name == b"content-length" and (not value.isdigit() or len(value) > 12 or int(value) > most):
            raise RefusedError(413, TOO_LARGE)


def _with_headers(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    given = {name.lower() for name, _ in headers}
    added = HEADERS | {b"cache-control": b"no-store"}
    return [*headers, *((name, value) for name, value in added.items() if name not in given)]
