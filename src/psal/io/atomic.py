"""Atomic file writes."""

import contextlib
import errno
import os
import tempfile
from pathlib import Path

DISK_FULL = (errno.ENOSPC, errno.EDQUOT)


class DiskFullError(OSError):
    """There is no room for a file, or the user's quota is used up: further files would fail as well."""


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file atomically: readers see the old content or the new, and a failed write keeps the old.

    Symbolic links are followed, and an existing file keeps its permissions.

    Raises:
        DiskFullError: if there is no room for it.
        OSError: if the file cannot be written; the message names it.
    """
    target = os.path.realpath(path)
    temporary = None
    try:
        descriptor, temporary = tempfile.mkstemp(dir=os.path.dirname(target), prefix=".psal-", suffix=".part")
        with open(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, _permissions(path))
        os.replace(temporary, target)
        temporary = None
    except OSError as error:
        kind = DiskFullError if error.errno in DISK_FULL else OSError
        raise kind(f"{path} cannot be written: {error.strerror}: make room, or choose another folder") from error
    finally:
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)


def check_folder_is_writable(folder: Path) -> None:
    """Create a folder if necessary, and check that files can be written to it, before any long work.

    Raises:
        OSError: if it cannot be created or written to; the message names it.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise OSError(f"cannot write to the folder {folder}: {error.strerror}: choose another one") from error


def _permissions(path: Path) -> int:
    """Permissions of the existing file, or those the umask gives to new ones."""
    with contextlib.suppress(FileNotFoundError):
        return path.stat().st_mode & 0o777
    umask = os.umask(0)  # the umask can only be read by setting it
    os.umask(umask)
    return 0o666 & ~umask
