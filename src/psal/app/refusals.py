"""Requests that are refused: a status, a sentence for the page, a line in the log."""

import logging
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from psal.app.job_queue import BusyError
from psal.app.sessions import NoRoomError, UnknownSessionError
from psal.app.storage import DISK_FULL, is_disk_full
from psal.app.workers import StoppedError
from psal.errors import UsageError

LOG = logging.getLogger("psal.app")
EXPIRED = "this page has expired: load it again"
MAX_LOGGED = 200  # characters of a path or a sentence in the log


class RefusedError(Exception):
    """A request that is not served.

    Args:
        status: of HTTP.
        sentence: for whoever asked.
    """

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


def refusal(error: BaseException, method: str, path: str) -> Response:
    """Answer to a request that failed, and a line in the log; never a traceback, never a path of the server."""
    status, sentence = _status_and_sentence(error)
    line = f"{method[:16]} {path}: {status} {sentence}"[:MAX_LOGGED]
    LOG.warning("%s", line.encode("unicode_escape").decode())
    return JSONResponse({"error": sentence}, status)


async def refuse(request: Request, error: Exception) -> Response:
    """The same, as Starlette's handler of exceptions."""
    return refusal(error, request.method, request.url.path)


def handlers() -> dict[Any, Any]:
    """Handlers for all errors of routes."""
    return dict.fromkeys(
        [RefusedError, UsageError, UnknownSessionError, StoppedError, HTTPException, OSError, Exception], refuse
    )


def _status_and_sentence(error: BaseException) -> tuple[int, str]:
    if isinstance(error, RefusedError):
        return error.status, str(error)
    if isinstance(error, UnknownSessionError):
        return 403, EXPIRED
    if isinstance(error, StoppedError):
        return 409, "stopped"
    if isinstance(error, BusyError):
        return 429, str(error)
    if isinstance(error, NoRoomError):
        return 507, str(error)
    if is_disk_full(error) or str(error) == DISK_FULL:
        return 507, DISK_FULL
    if isinstance(error, UsageError):
        return 422, str(error)
    if isinstance(error, HTTPException):
        known = {404: "there is nothing at this address", 405: "this address does not take such requests"}
        return error.status_code, known.get(error.status_code, "the request is not understood")
    LOG.error("%s: %s", type(error).__name__, str(error)[:MAX_LOGGED])
    return 500, "something went wrong on the server: try again, or load the page again"
