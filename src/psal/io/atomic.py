"""Files that are written whole or not at all."""

import contextlib
import os
import tempfile
from pathlib import Path


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that nobody ever sees half of it; what stood there stays if it fails.

    Raises:
        OSError: if it cannot be written; the message names the file.
    """
    target = os.path.realpath(path)  # through a link, not in its place
    temporary = None
    try:
        descriptor, temporary = tempfile.mkstemp(dir=os.path.dirname(target), prefix=".psal-", suffix=".part")
        with open(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, _mode_of_new_file(path))
        os.replace(temporary, target)
        temporary = None
    except OSError as error:
        raise OSError(f"{path} cannot be written: {error.strerror}: make room, or choose another folder") from error
    finally:
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)


def check_folder_is_writable(folder: Path) -> None:
    """Find out now, not after the work, that nothing can be written to a folder; make it if it is not there.

    Raises:
        OSError: if it cannot be made or written to; the message names it.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise OSError(f"cannot write to the folder {folder}: {error.strerror}: choose another one") from error


def _mode_of_new_file(path: Path) -> int:
    """Permissions as of a file that was there before, or else as the umask has it."""
    with contextlib.suppress(FileNotFoundError):
        return path.stat().st_mode & 0o777
    umask = os.umask(0)  # there is no way to ask but to set it
    os.umask(umask)
    return 0o666 & ~umask
