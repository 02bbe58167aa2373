"""Controller between the page and the workers: checks inputs, runs jobs, formats messages."""

import base64
import binascii
import contextlib
import html
import math
import re
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gradio as gr

from psal.app.middleware import FILE
from psal.app.sessions import Session, Sessions, UnknownSessionError
from psal.app.workers import StoppedError, Workers
from psal.errors import UsageError
from psal.messages import describe
from psal.seeds import check_seed

PNG_ADDRESS = "data:image/png;base64,"
Value = dict[str, Any]  # value of a picture component: path and name


class Controller:
    """Handlers that the tabs share.

    Args:
        sessions: open sessions.
        workers: worker processes.
        samples: folder for the sample pictures, written in the background.
    """

    def __init__(self, sessions: Sessions, workers: Workers, samples: Path) -> None:
        self._sessions, self._workers, self._folder = sessions, workers, samples
        self._samples: dict[str, dict[str, str]] = {}
        self._written = threading.Lock()
        threading.Thread(target=self._write_samples, daemon=True).start()

    def session(self, request: gr.Request) -> Session:
        """Session of a request."""
        return self._sessions.on_page(request.session_hash)

    def open(self, value: Any, request: gr.Request) -> Value:
        """Read a dropped picture; return it with its size and a preview."""
        session = self.session(request)
        path, name = given_path(value, session, "a picture"), given_name(value)
        opened = self._workers.run("open_file", {"path": path, "folder": str(session.new_folder())})
        return shown(opened, name)

    def open_mask(self, value: Any, photo: Any, request: gr.Request) -> Value:
        """Read a mask dropped for a photo."""
        session = self.session(request)
        path, name = given_path(value, session, "a mask"), given_name(value)
        photo_path = given_path(photo, session, "a photograph")
        arguments = {"path": path, "photo": photo_path, "folder": str(session.new_folder())}
        return shown(self._workers.run("open_mask_file", arguments), name)

    def sample(self, edit: str, role: str, request: gr.Request) -> Value:
        """Copy a sample picture into the session, as if it had been dropped."""
        with self._written:
            source = Path(self._samples[edit][role])
        path = self.session(request).new_folder() / source.name
        shutil.copyfile(source, path)
        return {"path": str(path), "name": source.name}

    def work(
        self, task: str, arguments: dict[str, Any], words: str, progress: gr.Progress, request: gr.Request
    ) -> dict[str, Any]:
        """Run an edit as the session's only job, with a progress bar and the time left.

        Returns:
            The task's result and the ``seconds`` it took.
        """
        session = self.session(request)
        start = time.perf_counter()

        def report(share: float) -> None:
            passed = time.perf_counter() - start
            progress(share, desc=f"{words}: about {duration(passed * (1 - share) / share)} left")

        with session.job() as stop:
            progress(0, desc=words)
            folder = session.new_folder()
            try:
                done = self._workers.run(task, arguments | {"folder": str(folder)}, report, stop)
            except BaseException as error:
                shutil.rmtree(folder, ignore_errors=True)
                if isinstance(error, StoppedError):
                    passed = duration(time.perf_counter() - start)
                    raise StoppedError(f"stopped after {passed}") from None
                raise
        return done | {"seconds": time.perf_counter() - start}

    def quick(self, task: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Run a task that takes hardly any time."""
        return self._workers.run(task, arguments)

    def stop(self, request: gr.Request) -> str:
        """Stop the session's job, if there is one; return the message."""
        running = self.session(request).stop
        if running is not None:
            running.set()
        return said("stopped")

    def _write_samples(self) -> None:
        with self._written:
            self._folder.mkdir()
            with contextlib.suppress(StoppedError):  # the server ends
                self._samples = self._workers.run("write_samples", {"folder": str(self._folder)})


def attempt(handler: Callable[..., Any], outputs: int) -> Callable[..., Any]:
    """Wrap a handler whose first output is the message line, so that errors appear there.

    Args:
        handler: called with the request and then the inputs; returns all outputs.
        outputs: how many it returns.
    """

    def call(*inputs: Any) -> Any:
        try:
            return handler(*inputs)
        except UnknownSessionError:
            line = "this page has expired: reload it"
        except Exception as error:  # users of a page have no use for a stack trace
            line = str(error) if isinstance(error, StoppedError) else describe(error)
            if isinstance(error, StoppedError):
                return [said(line or "stopped"), *[gr.skip()] * (outputs - 1)]
        return [complaint(line), *[gr.skip()] * (outputs - 1)]

    return call


def said(line: str) -> str:
    """A message as HTML."""
    return f'<p class="said">{html.escape(sentence(line))}</p>'


def complaint(line: str) -> str:
    """An error message as HTML."""
    named = re.match(r"[^:]+\.\w+ (is|has|cannot) ", line)  # begins with a file's name, which stays as it is
    whole = line + "." if named else sentence(line)
    return f'<p class="complaint" role="alert">{html.escape(whole)}</p>'


def sentence(line: str) -> str:
    """Make a sentence: capital letter and period.

    >>> sentence("the mask is empty")
    'The mask is empty.'
    """
    return f"{line[:1].upper()}{line[1:]}{'' if line.endswith(('.', '!', '?')) or not line else '.'}"


def duration(seconds: float) -> str:
    """Format a time.

    >>> duration(0.314), duration(12.3), duration(200)
    ('0.31 s', '12 s', '3 min 20 s')
    """
    if seconds < 10:
        return f"{seconds:.2g} s"
    return f"{seconds:.0f} s" if seconds < 60 else f"{seconds // 60:.0f} min {seconds % 60:.0f} s"


def shown(opened: dict[str, Any], name: str) -> Value:
    """Value of a picture component."""
    return opened | {"name": name, "preview": address(opened["preview"])}


def address(path: str) -> str:
    """URL of a session's file."""
    return f"{FILE}{path}"


def given_path(value: Any, session: Session, what: str) -> str:
    """Path of a picture that the page sends back.

    Raises:
        UsageError: if none was given, or it is not the session's.
    """
    path = value.get("path") if isinstance(value, dict) else None
    if not isinstance(path, str):
        raise UsageError(f"give {what} first: drop it on its field, or try the sample")
    if not session.owns(path):
        raise UsageError(f"give {what} again: its file is no longer here")
    return path


def given_name(value: Any) -> str:
    """File name of a picture on the user's computer."""
    return Path(str(value.get("name") or value["path"])).name


def given_whole_number(value: Any, what: str) -> int:
    """Check a whole number from the page.

    Raises:
        UsageError: if it is not a whole number.
    """
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value) or value != int(value):
        raise UsageError(f"{what} must be a whole number, got {'nothing' if value is None else repr(value)}")
    return int(value)


def given_seed(value: Any) -> int:
    """Check a seed from the page.

    Raises:
        UsageError: if it is not a 64-bit integer.
    """
    seed = given_whole_number(value, "the seed")
    try:
        check_seed(seed)
    except ValueError as error:
        raise UsageError(str(error)) from None
    return seed


def keep_painted(painted: Any, session: Session) -> str | None:
    """Write the painted mask to a file of the session; return None if nothing was painted.

    Raises:
        UsageError: if it is not a PNG data URL.
    """
    if not painted:
        return None
    try:
        if not isinstance(painted, str) or not painted.startswith(PNG_ADDRESS):
            raise ValueError
        content = base64.b64decode(painted.removeprefix(PNG_ADDRESS), validate=True)
    except (ValueError, binascii.Error):
        raise UsageError("the painted mask did not arrive: reload the page") from None
    path = session.new_folder() / "painted.png"
    path.write_bytes(content)
    return str(path)
