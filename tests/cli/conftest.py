import subprocess
import sys
from pathlib import Path

import pytest
from support.commands import Run, mask, photo, save

import psal.cli.main


@pytest.fixture
def run_here(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], restored_threads: None) -> Run:
    """The command line in this process, which saves the start of another one."""

    def call(*arguments: object) -> subprocess.CompletedProcess[str]:
        monkeypatch.setattr(sys, "argv", ["psal", *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            psal.cli.main.main()
        said = capsys.readouterr()
        return subprocess.CompletedProcess([], int(stopped.value.code or 0), said.out, said.err)

    return call


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    """A photo and a mask."""
    return save(tmp_path / "in" / "photo.png", photo()), save(tmp_path / "in" / "mask.png", mask())
