"""What all routes share: sessions, queues, workers, and how a job runs in them."""

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator, Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote

from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import FileResponse, Response

from psal.app.access import ONE_YEAR, Access
from psal.app.job_queue import Job, JobQueue, threads_for
from psal.app.limits import MAX_CONCURRENT_EDITS, Timeouts
from psal.app.open_document import OpenDocument
from psal.app.sessions import Session, Sessions
from psal.app.workers import StoppedError, Workers

FILE_JOBS = 1  # pictures that are read or written at a time, beside the edits


class Service:
    """The server without its routes.

    Args:
        root: folder for all files.
        access: who may ask.
        timeouts: how long things may take.
    """

    def __init__(self, root: Path, access: Access, timeouts: Timeouts) -> None:
        self.root, self.access, self.timeouts = root, access, timeouts
        self.sessions = Sessions(root / "sessions", timeouts.idle)
        self.workers = Workers(MAX_CONCURRENT_EDITS + FILE_JOBS)
        self.edits, self.files = JobQueue(MAX_CONCURRENT_EDITS), JobQueue(FILE_JOBS)
        self.closing = asyncio.Event()
        self._threads = ThreadPoolExecutor(MAX_CONCURRENT_EDITS + FILE_JOBS)

    def session(self, request: Request) -> Session:
        """The session of a request.

        Raises:
            UnknownSessionError: if there is none.
        """
        return self.sessions.known(self.access.cookie_of(request.scope))

    def welcome(self, request: Request) -> Session:
        """The session of a request, or a new one; :meth:`greet` tells the browser."""
        return self.sessions.welcome(self.access.cookie_of(request.scope))

    def greet(self, session: Session, answer: Response) -> Response:
        """Let an answer carry the session's cookie."""
        answer.set_cookie(self.access.cookie, session.token, max_age=ONE_YEAR, httponly=True, samesite="strict")
        return answer

    async def edit(self, visitor: Hashable, job: Job, task: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Run an edit when it is the visitor's turn; the cores are shared with the other edits that run."""
        async with self._kept(visitor), self.edits.turn(visitor, job):
            return await self._run(job, task, arguments | threads_for(self.edits.running, os.cpu_count() or 1))

    async def file(self, visitor: Hashable, task: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Read or write a picture when it is the visitor's turn."""
        job = Job(task)
        async with self._kept(visitor), self.files.turn(visitor, job):
            return await self._run(job, task, arguments)

    async def write_sample(self, session: Session, edit: str, role: str, path: Path) -> None:
        """Write a picture of an edit's sample to a file of any name: its ``photo``, ``mask`` or ``reference``."""
        made = path.with_name("sample.png")  # the name tells the format
        await self.file(session, "write_sample", {"edit": edit, "role": role, "path": str(made)})
        made.replace(path)

    def photo(self, request: Request) -> tuple[Session, OpenDocument]:
        """The session and the open photograph that a request's address names.

        Raises:
            UnknownSessionError: if there is none.
        """
        session = self.session(request)
        return session, session.documents.get(request.path_params["id"])

    @contextlib.asynccontextmanager
    async def _kept(self, visitor: Hashable) -> AsyncIterator[None]:
        """A session does not end while its job waits or runs."""
        with visitor.held() if isinstance(visitor, Session) else contextlib.nullcontext():
            yield

    async def _run(self, job: Job, task: str, arguments: dict[str, Any]) -> dict[str, Any]:
        loop = asyncio.get_running_loop()
        job.begun = time.monotonic()
        job.changed()
        report = job.reporter(loop)
        try:
            return await loop.run_in_executor(self._threads, self.workers.run, task, arguments, report, job.stopping)
        except asyncio.CancelledError:
            job.stopping.set()
            raise

    def close(self) -> None:
        """Stop all work and end all streams."""
        self.closing.set()
        self.sessions.notify()
        self.workers.close()
        self._threads.shutdown(wait=False, cancel_futures=True)


@contextlib.asynccontextmanager
async def stopped_by_hanging_up(request: Request, job: Job) -> AsyncIterator[None]:
    """Stop a job when whoever asked for it hangs up. The request's body must have been read."""

    async def watch() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        job.stop()

    watching = asyncio.create_task(watch())
    try:
        yield
    finally:
        watching.cancel()
        with contextlib.suppress(asyncio.CancelledError, StoppedError):
            await watching


def attachment(path: Path, name: str, remove: Callable[[], None]) -> Response:
    """A file to be saved under a name.

    Args:
        path: of the file.
        name: for the user's computer.
        remove: called when it has been sent.
    """
    headers = {"content-disposition": f"attachment; filename*=utf-8''{quote(name)}"}
    return FileResponse(path, headers=headers, background=BackgroundTask(remove))
