"""Processes that do the work, so that it can be stopped at any time and a broken file takes nothing else along."""

import contextlib
import json
import multiprocessing
import os
import queue
import signal
import subprocess
import sys
import threading
from typing import Any

from psal.errors import UsageError
from psal.progress import Progress

POLL_SECONDS = 0.05  # how soon a stop is noticed
BROKEN = "the work broke off, most likely for want of memory: make the picture smaller"


class StoppedError(Exception):
    """The job was stopped before its end."""


class WorkError(UsageError):
    """What went wrong, in a sentence for the session."""


class DeadWorkerError(Exception):
    """The process had ended before it began with the job."""


class Worker:
    """A process that runs functions of :mod:`psal.app.tasks`, one after the other."""

    def __init__(self) -> None:
        ours, theirs = multiprocessing.Pipe()
        with theirs:
            # -P: a torch.py in the folder where the command was given is none of its modules.
            command = [sys.executable, "-P", "-m", "psal.app.worker", str(theirs.fileno())]
            # Threads that spin while they wait take the cores from other workers.
            environment = {"OMP_WAIT_POLICY": "PASSIVE"} | os.environ
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()], env=environment
            )
        self._pipe = ours

    def run(self, task: str, arguments: dict[str, Any], progress: Progress, stop: threading.Event) -> dict[str, Any]:
        """Run a task to its end.

        Raises:
            StoppedError: if ``stop`` was set before; the process is of no more use then.
            WorkError: if it failed.
            DeadWorkerError: if the process had ended before it began.
            EOFError, OSError: if the process ended meanwhile.
        """
        try:
            self._pipe.send_bytes(json.dumps({"task": task, "arguments": arguments}).encode())
        except OSError as error:
            raise DeadWorkerError from error
        begun = False
        while True:
            while not self._pipe.poll(POLL_SECONDS):
                if stop.is_set():
                    raise StoppedError
            try:
                message: dict[str, Any] = json.loads(self._pipe.recv_bytes())
            except (EOFError, OSError) as error:
                if begun:
                    raise
                raise DeadWorkerError from error
            begun = True
            if stop.is_set():
                raise StoppedError
            if "begun" in message:
                continue
            if "progress" in message:
                progress(message["progress"])
            elif "failed" in message:
                raise WorkError(message["failed"])
            else:
                return dict(message["done"])

    def end(self) -> None:
        """End the process, whatever it does."""
        self._process.kill()
        self._process.wait()
        self._pipe.close()


class Workers:
    """Some workers, started when they are first needed.

    Args:
        most: at a time.
    """

    def __init__(self, most: int) -> None:
        self._idle: queue.LifoQueue[Worker] = queue.LifoQueue()
        self._all: set[Worker] = set()
        self._most = most
        self._lock = threading.Lock()
        self._closed = False

    def start_one(self) -> None:
        """Start one before it is needed, for it takes a while to load torch."""
        if (worker := self._new()) is not None:
            self._idle.put(worker)

    def run(
        self,
        task: str,
        arguments: dict[str, Any],
        progress: Progress = lambda share: None,
        stop: threading.Event | None = None,
    ) -> dict[str, Any]:
        """Run a function of :mod:`psal.app.tasks` in one of the processes.

        Args:
            task: name of the function.
            arguments: its arguments, as JSON has them.
            progress: called with the share that is done.
            stop: ends the work at once when it is set.

        Returns:
            What the function returns.

        Raises:
            StoppedError: if it was stopped.
            WorkError: if it failed; the message is a sentence for the session.
        """
        stop = stop or threading.Event()
        for _ in range(1 + self._most):
            with contextlib.suppress(DeadWorkerError):  # killed while it was idle: the next one does it
                return self._run_once(self._take(stop), task, arguments, progress, stop)
        raise WorkError(BROKEN)

    def _run_once(
        self, worker: Worker, task: str, arguments: dict[str, Any], progress: Progress, stop: threading.Event
    ) -> dict[str, Any]:
        try:
            outcome = worker.run(task, arguments, progress, stop)
        except WorkError:
            self._idle.put(worker)
            raise
        except DeadWorkerError:
            self._replace(worker)
            if self._closed:
                raise StoppedError from None
            raise
        except (EOFError, OSError) as error:
            self._replace(worker)
            if self._closed:
                raise StoppedError from None
            raise WorkError(BROKEN) from error
        except BaseException:
            self._replace(worker)
            raise
        self._idle.put(worker)
        return outcome

    def close(self) -> None:
        """End all processes."""
        with self._lock:
            self._closed = True
            ended, self._all = self._all, set()
        for worker in ended:
            worker.end()

    def _new(self) -> Worker | None:
        with self._lock:
            if self._closed or len(self._all) >= self._most:
                return None
            worker = Worker()
            self._all.add(worker)
            return worker

    def _take(self, stop: threading.Event) -> Worker:
        while not stop.is_set() and not self._closed:
            with contextlib.suppress(queue.Empty):
                return self._idle.get_nowait()
            if (worker := self._new()) is not None:
                return worker
            with contextlib.suppress(queue.Empty):
                return self._idle.get(timeout=POLL_SECONDS)
        raise StoppedError

    def _replace(self, worker: Worker) -> None:
        with self._lock:
            known = worker in self._all
            self._all.discard(worker)
        if known:
            worker.end()
            self.start_one()


def ignore_interrupts() -> None:
    """For a worker: ctrl-C goes to all processes of a terminal, and the server ends its workers itself."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
