"""Who is on the page: a folder for each visitor's files, which goes when the visitor does, and one job at a time."""

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

from psal.app.limits import IDLE_SECONDS, MEGA, MOST_BYTES_KEPT
from psal.errors import UsageError

LONGEST_NAME = 80
BUSY = "one job at a time: another one of yours is running, perhaps in another window; wait for it, or stop it"


class UnknownVisitorError(LookupError):
    """No page of this server was opened before, or it was left."""


@dataclass
class Visitor:
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
        """Whether a path, links and dots resolved, is that of something in the visitor's folder."""
        try:
            return self.folder in Path(path).resolve().parents
        except (OSError, ValueError, RuntimeError):  # a NUL, a loop of links
            return False

    def new_folder(self) -> Path:
        """A new folder in the visitor's own.

        Raises:
            UsageError: if there is too much in it.
        """
        if (kept := sum(map(_size_of, self.files()))) > MOST_BYTES_KEPT:
            raise UsageError(
                f"there are {kept / MEGA:.0f} MB of your pictures here, of which at most "
                f"{MOST_BYTES_KEPT / MEGA:.0f} are kept: load the page again to begin anew"
            )
        folder = self.folder / secrets.token_hex(8)
        folder.mkdir(parents=True, mode=0o700)
        return folder

    def files(self) -> list[Path]:
        """All files of the visitor."""
        return [Path(folder, name) for folder, _, names in os.walk(self.folder) for name in names]

    def forget(self, path: str | Path | None) -> None:
        """Remove a file's folder, if it is one of the visitor's."""
        if path is not None and self.owns(path) and Path(path).resolve().parent != self.folder:
            shutil.rmtree(Path(path).resolve().parent, ignore_errors=True)

    @contextlib.contextmanager
    def job(self) -> Iterator[threading.Event]:
        """Hold the visitor's only job; yields what is set when it is to stop.

        Raises:
            UsageError: if the visitor has another job.
        """
        if self.stop is not None:
            raise UsageError(BUSY)
        self.stop = threading.Event()
        try:
            yield self.stop
        finally:
            self.stop = None


class Visitors:
    """All of them.

    Args:
        folder: where each gets a folder of its own.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder.resolve()
        self._lock = threading.Lock()
        self._by_token: dict[str, Visitor] = {}
        self._by_page: dict[str, Visitor] = {}

    def __len__(self) -> int:
        return len(self._by_token)

    def welcome(self, token: str | None) -> Visitor:
        """The visitor of that token, or a new one with a new token."""
        with self._lock:
            visitor = self._by_token.get(token or "")
            if visitor is None:
                token = secrets.token_urlsafe(32)
                # The folder's name shows in addresses; the token must not.
                visitor = Visitor(token, self._folder / secrets.token_hex(16))
                self._by_token[token] = visitor
            visitor.seen = time.monotonic()
            return visitor

    def known(self, token: str | None) -> Visitor:
        """The visitor of that token.

        Raises:
            UnknownVisitorError: if there is none.
        """
        with self._lock:
            visitor = self._by_token.get(token or "")
            if visitor is None:
                raise UnknownVisitorError
            visitor.seen = time.monotonic()
            return visitor

    def on_page(self, page: str | None) -> Visitor:
        """The visitor who opened a page.

        Raises:
            UnknownVisitorError: if there is none.
        """
        with self._lock:
            if (visitor := self._by_page.get(page or "")) is None:
                raise UnknownVisitorError
            return visitor

    def bind(self, page: str, visitor: Visitor) -> bool:
        """Note whose page it is; False if it is somebody else's."""
        with self._lock:
            return self._by_page.setdefault(page, visitor) is visitor

    def enter(self, page: str, visitor: Visitor) -> None:
        """A page is open from now on."""
        with self._lock:
            visitor.pages.add(page)

    def leave(self, page: str, visitor: Visitor) -> None:
        """A page was closed; with the last one, the visitor's job and files go."""
        with self._lock:
            visitor.pages.discard(page)
            if self._by_page.get(page) is visitor:
                del self._by_page[page]
            if visitor.pages:
                return
            # The token stays for a while: it costs nothing, and a page that is loaded again comes with it.
            self._clear(visitor)

    def sweep(self) -> None:
        """Forget those who have no page open and have not asked for anything for a while."""
        with self._lock:
            late = time.monotonic() - IDLE_SECONDS
            for visitor in [x for x in self._by_token.values() if not x.pages and x.seen < late]:
                self._clear(visitor)
                del self._by_token[visitor.token]
                self._by_page = {page: owner for page, owner in self._by_page.items() if owner is not visitor}

    def _clear(self, visitor: Visitor) -> None:
        if visitor.stop is not None:
            visitor.stop.set()
        shutil.rmtree(visitor.folder, ignore_errors=True)


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
    short = f"{(stem if dot else suffix)[:LONGEST_NAME]}{dot}{suffix[:8] if dot else ''}".strip(" .")
    return short or "picture"
