"""Who is on the page: each session has a folder, its open photographs and a secret in a cookie."""

import contextlib
import os
import re
import secrets
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Generic, TypeVar

from psal.app.limits import MAX_NAME_LENGTH, MAX_PHOTOS, MAX_SESSION_BYTES, MAX_SESSIONS, MEGA
from psal.app.open_document import OpenDocument
from psal.errors import UsageError

Item = TypeVar("Item")


class UnknownSessionError(LookupError):
    """The session was never there, or has ended."""


class NoRoomError(UsageError):
    """There is no room for a further file; the message is a sentence for the page."""


class Shelf(Generic[Item]):
    """What a session has of one kind, by random names that only its own page knows."""

    def __init__(self) -> None:
        self._items: dict[str, Item] = {}

    def put(self, item: Item, name: str | None = None) -> str:
        name = name or secrets.token_hex(8)
        self._items[name] = item
        return name

    def get(self, name: str) -> Item:
        """
        Raises:
            UnknownSessionError: if there is none of that name.
        """
        try:
            return self._items[name]
        except KeyError:
            raise UnknownSessionError from None

    def pop(self, name: str) -> Item | None:
        return self._items.pop(name, None)

    def all(self) -> list[Item]:
        return list(self._items.values())

    def __len__(self) -> int:
        return len(self._items)


class Session:
    """A browser.

    Args:
        folder: for its files.

    Attributes:
        token: the secret that its cookie holds.
        documents: its open photographs.
        folders: of its folder runs and of the matches that it looks into.
        holds: open pages and running jobs, which keep it.
        seen: when it last asked for something.
    """

    def __init__(self, folder: Path) -> None:
        self.token = secrets.token_urlsafe(32)
        self.folder = folder
        self.documents: Shelf[OpenDocument] = Shelf()
        self.folders: Shelf[Path] = Shelf()
        self.holds = 0
        self.seen = time.monotonic()

    def check_room(self) -> None:
        """Check that a further file may be kept.

        Raises:
            NoRoomError: if the session has too many bytes.
        """
        if (kept := sum(map(_size_of, self.files()))) > MAX_SESSION_BYTES:
            raise NoRoomError(
                f"your pictures take {kept / MEGA:.0f} MB here, of at most {MAX_SESSION_BYTES / MEGA:.0f} MB: "
                "download what you need and close a photograph"
            )

    def new_folder(self) -> Path:
        """A new folder in the session's own.

        Raises:
            NoRoomError: if there is too much in it.
        """
        self.check_room()
        folder = self.folder / secrets.token_hex(8)
        folder.mkdir(parents=True, mode=0o700)
        return folder

    def files(self) -> list[Path]:
        """All files of the session."""
        return [Path(folder, name) for folder, _, names in os.walk(self.folder) for name in names]

    def check_photos(self) -> None:
        """Check that a further photograph may be opened.

        Raises:
            NoRoomError: if not.
        """
        if len(self.documents) >= MAX_PHOTOS:
            raise NoRoomError(f"{MAX_PHOTOS} photographs are open in this browser: close one of their pages first")

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Keep the session while a page is connected or a job runs."""
        self.holds += 1
        try:
            yield
        finally:
            self.holds -= 1
            self.seen = time.monotonic()

    def end(self) -> None:
        """Stop its jobs and remove its files."""
        for document in self.documents.all():
            document.close()
        shutil.rmtree(self.folder, ignore_errors=True)


class Sessions:
    """All of them.

    Args:
        folder: where each gets a folder of its own.
        idle: seconds without a request or an open page after which one ends.
    """

    def __init__(self, folder: Path, idle: float) -> None:
        self._folder, self._idle = folder.resolve(), idle
        self._lock = threading.Lock()
        self._by_token: dict[str, Session] = {}

    def __len__(self) -> int:
        return len(self._by_token)

    def welcome(self, token: str | None) -> Session:
        """The session of that token, or a new one.

        Raises:
            NoRoomError: if there are too many.
        """
        with self._lock:
            session = self._by_token.get(token or "")
            if session is None:
                if len(self._by_token) >= MAX_SESSIONS:
                    raise NoRoomError("too many people are here at the moment: try again in some minutes")
                session = Session(self._folder / secrets.token_hex(16))
                self._by_token[session.token] = session
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

    def notify(self) -> None:
        """Wake all streams of events."""
        for session in list(self._by_token.values()):
            for document in session.documents.all():
                document.notify()

    def sweep(self) -> None:
        """End those that have no page connected and have not asked for anything for a while."""
        with self._lock:
            late = time.monotonic() - self._idle
            gone = [session for session in self._by_token.values() if not session.holds and session.seen < late]
            for session in gone:
                del self._by_token[session.token]
        for session in gone:
            session.end()


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
