"""The option --device of the commands that edit."""

from pathlib import Path

import pytest
import torch
from support.commands import Run, files_in, photo, save

no_device = pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")


@pytest.fixture
def pictures(tmp_path: Path) -> tuple[Path, Path]:
    return save(tmp_path / "in" / "photo.png", photo()), save(tmp_path / "in" / "other.png", photo(31, 29))


@no_device
@pytest.mark.parametrize("edit", ["colorize", "reconstruct", "upscale", "inpaint"])
def test_a_device_that_is_not_there_is_named_before_the_work(
    edit: str, pictures: tuple[Path, Path], tmp_path: Path, run_here: Run
) -> None:
    given = pictures[:1] if edit == "upscale" else pictures
    done = run_here(edit, *given, "-o", tmp_path / "out" / "out.png", "--device", "cuda")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: there is no device 'cuda': torch finds no CUDA device\n"
    assert files_in(tmp_path / "out") == set()


@no_device
def test_the_demo_refuses_a_device_that_is_not_there(tmp_path: Path, run_here: Run) -> None:
    done = run_here("demo", "-o", tmp_path / "out", "--device", "cuda")
    assert (done.returncode, done.stderr) == (2, "error: there is no device 'cuda': torch finds no CUDA device\n")


@pytest.mark.parametrize("word", ["meta", "tpu"])
def test_other_devices_are_refused(word: str, pictures: tuple[Path, Path], tmp_path: Path, run_here: Run) -> None:
    done = run_here("reconstruct", *pictures, "-o", tmp_path / "out.png", "--device", word)
    assert done.returncode == 2
    assert f"'{word}' is not one of" in done.stderr


@no_device
def test_auto_is_the_cpu_where_there_is_no_other(pictures: tuple[Path, Path], tmp_path: Path, run_here: Run) -> None:
    for name, given in (("default", ()), ("auto", ("--device", "auto")), ("cpu", ("--device", "cpu"))):
        assert run_here("reconstruct", *pictures, "-o", tmp_path / f"{name}.png", *given).returncode == 0
    assert len({(tmp_path / f"{name}.png").read_bytes() for name in ("default", "auto", "cpu")}) == 1


def test_edits_that_run_on_the_cpu_alone_have_no_such_option(
    pictures: tuple[Path, Path], tmp_path: Path, run_here: Run
) -> None:
    for arguments in (("outpaint", pictures[0]), ("apply-shifts", tmp_path / "map.npz", pictures[0])):
        done = run_here(*arguments, "-o", tmp_path / "out.png", "--device", "cpu")
        assert done.returncode == 2
        assert "No such option" in done.stderr
