"""What a request may do, checked before Gradio sees it.

Gradio serves many addresses that this page does not need, some of which fetch from other machines or reach into the
file system. Only those on the list below pass; files go through here alone, and none but a session's own.
"""

import asyncio
import json
import re
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from psal.app.files_route import answer_file, receive_upload
from psal.app.limits import MAX_FILE_BYTES, MAX_MESSAGE_BYTES, MEGA
from psal.app.sessions import BUSY, Session, Sessions, UnknownSessionError
from psal.errors import UsageError

if TYPE_CHECKING:
    import gradio as gr

API = "/gradio_api/"
PUBLIC = re.compile(r"/(assets/.*|static/.*|theme\.css|favicon\.ico|manifest\.json|robots\.txt|config/?)?")
PRIVATE = re.compile(API + r"(queue/join|queue/data|cancel|info/?|app_id/?|heartbeat/[^/]+)")
UPLOAD, UPLOAD_PROGRESS, RESET = API + "upload", API + "upload_progress", API + "reset"
FILE, HEARTBEAT = API + "file=", API + "heartbeat/"
GRACE_SECONDS, GRACE_STEPS = 0.5, 25  # Gradio tells that an edit is done a little before it forgets it
OVERHEAD = 64 * 1024  # of a form around its file
FILE_TOO_LARGE = f"a file may have at most {MAX_FILE_BYTES / MEGA:.0f} MB: make it smaller"
MESSAGE_TOO_LARGE = f"what the page sends may have at most {MAX_MESSAGE_BYTES / MEGA:.0f} MB: load it again"
HEADERS = {
    # The browser itself refuses to fetch anything from elsewhere. Gradio's scripts need eval.
    b"content-security-policy": (
        b"default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
        b"img-src 'self' data: blob:; font-src 'self' data:; worker-src 'self' blob:; object-src 'none'; "
        b"base-uri 'self'; form-action 'none'; frame-ancestors 'none'"
    ),
    b"referrer-policy": b"no-referrer",
    b"x-content-type-options": b"nosniff",
}


class TooLargeError(Exception):
    """A request has a longer body than it may have; the message is a sentence for the session."""


class Middleware:
    """The outermost layer of the server.

    Args:
        app: the rest of it.
        sessions: who is there.
        blocks: gives the page; known once it is built.
        hosts: names by which the server may be called; any, if None. A page elsewhere whose name is made to lead here
            calls it by that name.
        port: that it listens on.
        edits: name of the queue of which a session gets one place.
    """

    def __init__(
        self, app: ASGIApp, *, sessions: Sessions, blocks: "gr.Blocks", hosts: set[str] | None, port: int, edits: str
    ) -> None:
        self._app, self._sessions, self._blocks = app, sessions, blocks
        self._hosts, self._edits = hosts, edits
        self._cookie = f"psal-session-{port}"  # cookies don't tell ports apart

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await self._app(scope, receive, send)
        if scope["type"] != "http":
            return None  # nothing here speaks through web sockets
        with_headers = _adding(send, HEADERS)
        try:
            await self._pass(scope, receive, with_headers)
        except UnknownSessionError:
            await _refusal(403, "this page has expired: reload it")(scope, receive, with_headers)
        except TooLargeError as error:
            await _refusal(413, str(error))(scope, receive, with_headers)
        except UsageError as error:
            await _refusal(429, str(error))(scope, receive, with_headers)

    async def _pass(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        path = scope["path"]
        if self._hosts is not None and (request.url.hostname or "") not in self._hosts:
            return await _refusal(403, "this server is called by another name")(scope, receive, send)
        token = _cookie(request, self._cookie)
        if (
            PUBLIC.fullmatch(path)
            and request.method in ("GET", "HEAD")
            and not scope["query_string"].count(b"deep_link")
        ):
            if path == "/":
                send = _adding(send, {b"set-cookie": self._set_cookie(self._sessions.welcome(token))})
            return await self._app(scope, receive, send)
        session = self._sessions.known(token)
        if path == UPLOAD and request.method == "POST":
            limited = Request(scope, _limited(receive, request, MAX_FILE_BYTES + OVERHEAD, FILE_TOO_LARGE))
            return await (await receive_upload(limited, session))(scope, receive, send)
        if path == UPLOAD_PROGRESS:  # the file is here when its upload is answered: there is nothing to tell before
            return await Response('data: {"msg": "done"}\n\n', media_type="text/event-stream")(scope, receive, send)
        if path == RESET:  # Gradio does nothing either
            return await JSONResponse({"success": True})(scope, receive, send)
        if path.startswith(FILE):
            return await answer_file(unquote(path.removeprefix(FILE)), session)(scope, receive, send)
        if not PRIVATE.fullmatch(path):
            return await _refusal(404, "there is nothing at this address")(scope, receive, send)
        return await self._speak(request, session, scope, receive, send)

    async def _speak(self, request: Request, session: Session, scope: Scope, receive: Receive, send: Send) -> None:
        """Requests of an open page: events, their answers, and the sign that it is still open."""
        path = scope["path"]
        if path.startswith(HEARTBEAT):
            page = path.removeprefix(HEARTBEAT)
            self._check_page(page, session)
            self._sessions.enter(page, session)
            try:
                return await self._app(scope, receive, send)
            finally:
                self._sessions.leave(page, session)
        if request.method == "GET":
            asked = parse_qs(scope["query_string"].decode("latin-1")).get("session_hash", [""])[0]
            if path == API + "queue/data":
                self._check_page(asked, session)
            return await self._app(scope, receive, send)
        content = await Request(scope, _limited(receive, request, MAX_MESSAGE_BYTES, MESSAGE_TOO_LARGE)).body()
        try:
            message = json.loads(content)
            page = message["session_hash"]
        except (ValueError, KeyError, TypeError, RecursionError):
            return await _refusal(400, "the request is not understood")(scope, receive, send)
        if not isinstance(page, str) or not all(session.owns(found) for found in _paths(message)):
            return await _refusal(403, "only files that were given on this page can be used")(scope, receive, send)
        self._check_page(page, session)
        if path == API + "queue/join":
            await self._check_place(message, session)
        return await self._app(scope, _replay(content, receive), send)

    def _check_page(self, page: str, session: Session) -> None:
        if not page or not self._sessions.bind(page, session):
            raise UnknownSessionError

    async def _check_place(self, message: dict[str, Any], session: Session) -> None:
        """One edit for each session, waiting or running."""
        if self._queue_of(message.get("fn_index")) != self._edits:
            return
        for _ in range(GRACE_STEPS):
            events = list(self._blocks._queue.event_ids_to_events.values())
            if not any(x.concurrency_id == self._edits and self._is_of(x.session_hash, session) for x in events):
                return
            await asyncio.sleep(GRACE_SECONDS / GRACE_STEPS)
        raise UsageError(BUSY)

    def _queue_of(self, number: Any) -> str | None:
        function = self._blocks.fns.get(number) if isinstance(number, int) else None
        return function.concurrency_id if function else None

    def _is_of(self, page: str, session: Session) -> bool:
        try:
            return self._sessions.on_page(page) is session
        except UnknownSessionError:
            return False

    def _set_cookie(self, session: Session) -> bytes:
        return f"{self._cookie}={session.token}; Path=/; HttpOnly; SameSite=Strict".encode()


def _refusal(status: int, sentence: str) -> Response:
    if status == 413:  # Gradio shows an upload's answer as it is
        return PlainTextResponse(sentence, status)
    return JSONResponse({"detail": sentence, "error": sentence}, status)


def _cookie(request: Request, name: str) -> str | None:
    try:
        found = SimpleCookie(request.headers.get("cookie", "")).get(name)
    except CookieError:
        return None
    return found.value if found else None


def _paths(value: Any) -> list[str]:
    """Everything in a message that Gradio might take for a file: the paths, and addresses of data."""
    if isinstance(value, list):
        return [path for item in value for path in _paths(item)]
    if not isinstance(value, dict):
        return []
    found = [str(value["path"])] if value.get("path") is not None else []
    found += [str(value["url"])] if str(value.get("url") or "").startswith(("data:", "file:")) else []
    return found + [path for item in value.values() for path in _paths(item)]


def _adding(send: Send, headers: dict[bytes, bytes]) -> Send:
    async def send_more(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", []), *headers.items()]
        await send(message)

    return send_more


def _limited(receive: Receive, request: Request, most: int, sentence: str) -> Receive:
    """The body as it comes, as long as it is not too long; its length need not be what the header says."""
    if int(request.headers.get("content-length") or 0) > most:
        raise TooLargeError(sentence)
    left = most

    async def receive_some() -> Message:
        nonlocal left
        message = await receive()
        left -= len(message.get("body", b""))
        if left < 0:
            raise TooLargeError(sentence)
        return message

    return receive_some


def _replay(content: bytes, receive: Receive) -> Receive:
    """The body again, for who comes next."""
    sent = False

    async def receive_again() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": content, "more_body": False}

    return receive_again
