"""Files are replaced as a whole: a writer that is killed leaves the old file or the new one."""

import errno
import itertools
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from psal.io.atomic import DiskFullError, write_atomically

OLD, NEW = b"old" * 700_000, b"new!" * 600_000


def fork(work: Callable[[], None]) -> int:
    """Run a function in a fork of this process, which imports nothing again."""
    process = os.fork()
    if process:
        return process
    try:
        work()
    finally:
        os._exit(1)


def exit_code(process: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def write_both_in_turn(path: Path) -> None:
    for content in (NEW, OLD) * 50:
        write_atomically(path, content)


def kill_at(call: str, calls_before: int) -> None:
    """Let the process kill itself at a call of a function of the operating system."""
    original = getattr(os, call)
    countdown = itertools.count(calls_before, -1)

    def killed(*arguments: Any, **options: Any) -> Any:
        if next(countdown) == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return original(*arguments, **options)

    setattr(os, call, killed)


@pytest.mark.parametrize("call", ["fsync", "chmod", "replace"])
@pytest.mark.parametrize("calls_before", [0, 1, 2])
def test_a_writer_killed_before_renaming_leaves_a_whole_file(call: str, calls_before: int, tmp_path: Path) -> None:
    path = tmp_path / "photo.png"
    path.write_bytes(OLD)

    def write() -> None:
        kill_at(call, calls_before)
        write_both_in_turn(path)

    assert exit_code(fork(write)) == -signal.SIGKILL
    assert path.read_bytes() == (NEW if calls_before % 2 else OLD)


def test_a_writer_killed_at_any_time_leaves_a_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "photo.png"
    for _ in range(20):
        path.write_bytes(OLD)
        writer = fork(lambda: write_both_in_turn(path))
        while path.read_bytes() == OLD:  # until it has begun
            pass
        os.kill(writer, signal.SIGKILL)
        assert exit_code(writer) == -signal.SIGKILL
        assert path.read_bytes() in (OLD, NEW)


@pytest.mark.parametrize(
    ("code", "kind"), [(errno.ENOSPC, DiskFullError), (errno.EDQUOT, DiskFullError), (errno.EIO, OSError)]
)
def test_a_full_disk_is_told_apart_from_other_failures(
    code: int, kind: type[OSError], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(descriptor: int) -> None:
        raise OSError(code, "said the disk")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match=r"photo\.png cannot be written: said the disk: make room") as caught:
        write_atomically(tmp_path / "photo.png", NEW)
    assert type(caught.value) is kind
    assert not list(tmp_path.iterdir())


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "photo.png"
    path.parent.mkdir()
    path.write_bytes(OLD)
    with pytest.raises(TypeError):
        write_atomically(path, "text")  # type: ignore[arg-type]
    assert path.read_bytes() == OLD
    assert [file.name for file in path.parent.iterdir()] == ["photo.png"]
