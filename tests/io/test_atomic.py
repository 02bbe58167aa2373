"""Files are replaced as a whole: a writer that is killed leaves the old file or the new one."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from psal.io.atomic import write_atomically

OLD, NEW = b"old" * 700_000, b"new!" * 600_000

# Kills the process at the n-th call of a function of the operating system, when the file is being written.
WRITER = """
import os, signal, sys
from pathlib import Path
from psal.io.atomic import write_atomically

name, count, path = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
original = getattr(os, name)

def killed(*arguments, **options):
    global count
    count -= 1
    if count < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return original(*arguments, **options)

setattr(os, name, killed)
for content in (b"new!" * 600_000, b"old" * 700_000) * 50:
    write_atomically(path, content)
"""


@pytest.mark.parametrize("call", ["fsync", "chmod", "replace"])
@pytest.mark.parametrize("calls_before", [0, 1, 2])
def test_a_writer_killed_before_renaming_leaves_a_whole_file(call: str, calls_before: int, tmp_path: Path) -> None:
    path = tmp_path / "photo.png"
    path.write_bytes(OLD)
    done = subprocess.run([sys.executable, "-c", WRITER, call, str(calls_before), path], check=False, timeout=60)
    assert done.returncode == -signal.SIGKILL
    assert path.read_bytes() == (NEW if calls_before % 2 else OLD)


def test_a_writer_killed_at_any_time_leaves_a_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "photo.png"
    path.write_bytes(OLD)
    for _ in range(4):
        with subprocess.Popen([sys.executable, "-c", WRITER, "replace", "1000", path]) as writer:
            while path.read_bytes() == OLD and writer.poll() is None:  # until it has begun
                pass
            writer.kill()
        assert path.read_bytes() in (OLD, NEW)
        write_atomically(path, OLD)


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "photo.png"
    path.parent.mkdir()
    path.write_bytes(OLD)
    with pytest.raises(TypeError):
        write_atomically(path, "text")  # type: ignore[arg-type]
    assert path.read_bytes() == OLD
    assert [file.name for file in path.parent.iterdir()] == ["photo.png"]
