"""Who is on the page: a folder for each session's files, which goes when the session does, and one job at a time."""

import contextlib
import os
import re
import secrets
import shutil
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from psal.app.limits import IDLE_SECONDS, MAX_SESSION_BYTES, MEGA
from psal.errors import UsageError

MAX_NAME_LENGTH = 80
BUSY = "one job at a time: another one of yours is running, perhaps in another window; wait for it, or stop it"


class UnknownSessionError(LookupError):
    """No page of this server was opened before, or it was left."""


@dataclass
class Session:
    """A browser.

    Attributes:
        token: the secret that its cookie holds.
        folder: of its files; no request reads or writes any other.
        pages: session hashes of its open pages.
        seen: when it last asked for something.
        stop: set to end the job that runs; None where none does.
    """

    token: str
    folder: Path
    pages: set[str] = field(default_factory=set)
    seen: float = field(default_factory=time.monotonic)
    stop: threading.Event | None = None

    def owns(self, path: str | Path) -> bool:
        """Whether a path, links and dots resolved, is that of something in the session's folder."""
        try:
            return self.folder in Path(path).resolve().parents
        except (OSError, ValueError, RuntimeError):  # a NUL, a loop of links
            return False

    def new_folder(self) -> Path:
        """A new folder in the session's own.

        Raises:
            UsageError: if there is too much in it.
        """
        if (kept := sum(map(_size_of, self.files()))) > MAX_SESSION_BYTES:
            raise UsageError(
                f"there are {kept / MEGA:.0f} MB of your pictures here, of which at most "
                f"{MAX_SESSION_BYTES / MEGA:.0f} are kept: reload the page to start again"
            )
        folder = self.folder / secrets.token_hex(8)
        folder.mkdir(parents=True, mode=0o700)
        return folder

    def files(self) -> list[Path]:
        """All files of the session."""
        return [Path(folder, name) for folder, _, names in os.walk(self.folder) for name in names]

    def forget(self, path: str | Path | None) -> None:
        """Remove a file's folder, if it is one of the session's."""
        if path is not None and self.owns(path) and Path(path).resolve().parent != self.folder:
            shutil.rmtree(Path(path).resolve().parent, ignore_errors=True)

    @contextlib.contextmanager
    def job(self) -> Iterator[threading.Event]:
        """Hold the session's only job; yields what is set when it is to stop.

        Raises:
            UsageError: if the session has another job.
        """
        if self.stop is not None:
            raise UsageError(BUSY)
        self.stop = threading.Event()
        try:
            yield self.stop
        finally:
            self.stop = None


class Sessions:
    """All of them.

    Args:
        folder: where each gets a folder of its own.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder.resolve()
        self._lock = threading.Lock()
        self._by_token: dict[str, Session] = {}
        self._by_page: dict[str, Session] = {}

    def __len__(self) -> int:
        return len(self._by_token)

    def welcome(self, token: str | None) -> Session:
        """The session of that token, or a new one with a new token."""
        with self._lock:
            session = self._by_token.get(token or "")
            if session is None:
                token = secrets.token_urlsafe(32)
                # The folder's name shows in addresses; the token must not.
                session = Session(token, self._folder / secrets.token_hex(16))
                self._by_token[token] = session
            session.seen = time.monotonic()
            return session

    def known(self, token: str | None) -> Session:
        """The session of that token.

        Raises:
            UnknownSessionError: if there is none.
        """
        with self._lock:
            session = self._by_token.get(token or "")
            if session is None:
                raise UnknownSessionError
            session.seen = time.monotonic()
            return session

    def on_page(self, page: str | None) -> Session:
        """The session who opened a page.

        Raises:
            UnknownSessionError: if there is none.
        """
        with self._lock:
            if (session := self._by_page.get(page or "")) is None:
                raise UnknownSessionError
            return session

    def bind(self, page: str, session: Session) -> bool:
        """Note whose page it is; False if it is somebody else's."""
        with self._lock:
            return self._by_page.setdefault(page, session) is session

    def enter(self, page: str, session: Session) -> None:
        """A page is open from now on."""
        with self._lock:
            session.pages.add(page)

    def leave(self, page: str, session: Session) -> None:
        """A page was closed; with the last one, the session's job and files go."""
        with self._lock:
            session.pages.discard(page)
            if self._by_page.get(page) is session:
                del self._by_page[page]
            if session.pages:
                return
            # The token stays for a while: it costs nothing, and a page that is loaded again comes with it.
            self._clear(session)

    def sweep(self) -> None:
        """Forget those who have no page open and have not asked for anything for a while."""
        with self._lock:
            late = time.monotonic() - IDLE_SECONDS
            for session in [x for x in self._by_token.values() if not x.pages and x.seen < late]:
                self._clear(session)
                del self._by_token[session.token]
                self._by_page = {page: owner for page, owner in self._by_page.items() if owner is not session}

    def _clear(self, session: Session) -> None:
        if session.stop is not None:
            session.stop.set()
        shutil.rmtree(session.folder, ignore_errors=True)


def _size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # gone by now
        return 0


def plain_name(name: str) -> str:
    """A file's name without folders and what a file system or an address could take for something else.

    >>> plain_name("../../etc/my photo (1).JPG"), plain_name("C:\\\\a\\\\b.png"), plain_name("..")
    ('my photo (1).JPG', 'b.png', 'picture')
    """
    last = re.split(r"[/\\]", name)[-1]
    last = re.sub(r"[^\w .()+-]", "_", last).strip(" .")
    stem, dot, suffix = last.rpartition(".")
    short = f"{(stem if dot else suffix)[:MAX_NAME_LENGTH]}{dot}{suffix[:8] if dot else ''}".strip(" .")
    return short or "picture"
