"""The server's temporary folder: removed at the end, and by the next start if the server was killed."""

import contextlib
import errno
import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

PREFIX, LOCK = "psal-app-", "lock"
DISK_FULL = "there is no room left on the server's disk: make some, or use a smaller picture"
SHORT_WRITE = re.compile(r"\d+ requested and \d+ written")
FULL_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def is_disk_full(error: BaseException) -> bool:
    """Whether there was no room for a file; NumPy tells of it without a number."""
    if isinstance(error, OSError) and (error.errno in FULL_ERRORS or SHORT_WRITE.fullmatch(str(error))):
        return True
    return error.__cause__ is not None and is_disk_full(error.__cause__)


@contextlib.contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder for all files of this server. Also removes those of servers that are no longer there.

    A lock tells whether a folder's server still runs: it goes with the process, however that ends.
    """
    remove_leftovers()
    root = Path(tempfile.mkdtemp(prefix=PREFIX)).resolve()
    lock = os.open(root / LOCK, os.O_CREAT | os.O_RDWR, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    try:
        yield root
    finally:
        shutil.rmtree(root, ignore_errors=True)
        os.close(lock)


def remove_leftovers() -> None:
    """Remove the folders of this user's servers that were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            if folder.is_symlink() or folder.stat().st_uid != os.getuid():
                continue
            lock = os.open(folder / LOCK, os.O_RDWR | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails while its server runs
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(lock)
