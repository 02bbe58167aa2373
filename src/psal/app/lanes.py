"""Queues for the workers that are fair between sessions: each in turn, whoever asks how often."""

import asyncio
import contextlib
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Hashable
from typing import Any

from psal.app.limits import MAX_JOBS_PER_SESSION, MAX_QUEUE
from psal.app.time_left import TimeLeft
from psal.app.workers import StoppedError
from psal.errors import UsageError

BUSY = f"{MAX_JOBS_PER_SESSION} of your jobs wait already: let some finish, or stop them"
FULL = "too many jobs wait at the moment: try again in a minute"


class BusyError(UsageError):
    """There is no place in the queue; the message is a sentence for the page."""


class Job:
    """Something to be done by a worker.

    Args:
        label: a word for the page.
        changed: called on the event loop when its place or its progress has changed.

    Attributes:
        stopping: set to end it, in mid-computation if need be.
        place: in the queue, from 1; None once it runs.
        begun: when it began to run, in monotonic seconds.
        time_left: share of the work that is done, and how much longer it takes.
    """

    def __init__(self, label: str, changed: Callable[[], None] = lambda: None) -> None:
        self.label, self.changed = label, changed
        self.stopping = threading.Event()
        self.place: int | None = None
        self.begun: float | None = None
        self.time_left = TimeLeft()
        self._turn: asyncio.Future[None] | None = None

    def stop(self) -> None:
        """End it, whether it waits or runs."""
        self.stopping.set()
        if self._turn is not None and not self._turn.done():
            self._turn.set_exception(StoppedError())

    def reporter(self, loop: asyncio.AbstractEventLoop) -> Callable[[float], None]:
        """Progress callback for the worker's thread."""

        def report(share: float) -> None:
            if self.begun is not None:
                self.time_left.report(share, time.monotonic() - self.begun)
            with contextlib.suppress(RuntimeError):  # the loop is closed: the server ends
                loop.call_soon_threadsafe(self.changed)

        return report


class Lane:
    """Jobs of one kind, some at a time.

    Sessions take turns, and each has one job running at most.

    Args:
        size: jobs that run at the same time.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._running: set[Hashable] = set()
        self._waiting: dict[Hashable, deque[Job]] = {}  # the session whose turn is next comes first

    @property
    def running(self) -> int:
        """Jobs that run."""
        return len(self._running)

    @contextlib.asynccontextmanager
    async def turn(self, session: Hashable, job: Job) -> AsyncIterator[None]:
        """Wait until a job may run, and hold its place while it does.

        Raises:
            BusyError: if too many wait.
            StoppedError: if it was stopped meanwhile.
        """
        own = self._waiting.get(session, ())
        if len(own) >= MAX_JOBS_PER_SESSION:
            raise BusyError(BUSY)
        if sum(map(len, self._waiting.values())) >= MAX_QUEUE:
            raise BusyError(FULL)
        job._turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(session, deque()).append(job)
        self._dispatch()
        try:
            await job._turn
        except BaseException:
            if job._turn.done() and not job._turn.cancelled() and job._turn.exception() is None:
                self._running.discard(session)  # cancelled just when its turn had come
            self._withdraw(session, job)
            self._dispatch()
            raise
        try:
            yield
        finally:
            self._running.discard(session)
            self._dispatch()

    def _dispatch(self) -> None:
        for session in list(self._waiting):
            if len(self._running) >= self._size:
                break
            if session in self._running:
                continue
            queue = self._waiting.pop(session)
            job = queue.popleft()
            if queue:
                self._waiting[session] = queue  # at the end: the others come first
            assert job._turn is not None
            if not job._turn.done():
                self._running.add(session)
                job.place = None
                job._turn.set_result(None)
        self._number()

    def _withdraw(self, session: Hashable, job: Job) -> None:
        queue = self._waiting.get(session)
        if queue is not None and job in queue:
            queue.remove(job)
            if not queue:
                del self._waiting[session]

    def _number(self) -> None:
        """Tell those who wait at which place they are."""
        place, depth = 0, 0
        queues = list(self._waiting.values())
        while any(len(queue) > depth for queue in queues):
            for queue in queues:
                if len(queue) > depth:
                    place += 1
                    if queue[depth].place != place:
                        queue[depth].place = place
                        queue[depth].changed()
            depth += 1


def threads_for(running: int, cores: int) -> dict[str, Any]:
    """Arguments that share the cores between the jobs that run.

    >>> threads_for(1, 4), threads_for(3, 4)
    ({'threads': 4}, {'threads': 1})
    """
    return {"threads": max(1, cores // max(1, running))}
