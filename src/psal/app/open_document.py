"""A photograph while a page works on it: its running job, and the pages that hear of every change."""

import asyncio
import itertools
import shutil
import time
from typing import Any

from starlette.concurrency import run_in_threadpool

from psal.app.document import Document
from psal.app.lanes import Job


class OpenDocument:
    """A document with its job and its listeners. All methods are called on the event loop.

    Args:
        document: the photograph and its steps.
    """

    def __init__(self, document: Document) -> None:
        self.document = document
        self.job: Job | None = None
        self.message: dict[str, str] | None = None
        self._listeners: set[asyncio.Event] = set()
        self._numbers = itertools.count()

    async def state(self) -> dict[str, Any]:
        """What the page shows: the photograph, the running job, the last message.

        Answers and events may arrive in another order than they were sent. Of two states, the one with the higher
        number is the newer one: every change is followed by a state that is asked for after it.
        """
        number = next(self._numbers)
        # In a thread, for it may wait until a change that is under way is done.
        document: dict[str, Any] = await run_in_threadpool(self.document.state)
        return document | {"number": number, "job": job_state(self.job), "message": self.message}

    def listen(self) -> asyncio.Event:
        """An event that is set at every change."""
        event = asyncio.Event()
        self._listeners.add(event)
        return event

    def leave(self, event: asyncio.Event) -> None:
        """A listener that has gone."""
        self._listeners.discard(event)

    def notify(self) -> None:
        """Tell the pages that something has changed."""
        for event in self._listeners:
            event.set()

    def close(self) -> None:
        """Stop the job and remove the files."""
        if self.job is not None:
            self.job.stop()
        shutil.rmtree(self.document.folder, ignore_errors=True)
        self.notify()


def job_state(job: Job | None) -> dict[str, Any] | None:
    """Progress of a job, as the page shows it."""
    if job is None:
        return None
    if job.begun is None:
        return {"label": job.label, "place": job.place, "share": None, "left": None}
    left = job.time_left.at(time.monotonic() - job.begun)
    return {"label": job.label, "place": None, "share": job.time_left.share or None, "left": left}
