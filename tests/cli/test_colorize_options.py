"""The controls of ``psal colorize``, as processes and in this one."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import skimage.data
from numpy.typing import NDArray
from support.commands import Run, files_in, load, run, save

import psal

COFFEE: NDArray[Any] = skimage.data.coffee()[::4, ::5]
CAT: NDArray[Any] = skimage.data.chelsea()[::4, ::3]
GRAY = COFFEE.mean(2).astype(np.uint8)


@pytest.fixture
def gray(tmp_path: Path) -> Path:
    return save(tmp_path / "in" / "gray.png", GRAY)


def strokes() -> NDArray[Any]:
    painted = np.repeat(GRAY[..., None], 3, 2)
    painted[40:50, 30:40] = 200, 30, 30
    return painted


def test_several_references_are_used_together(gray: Path, tmp_path: Path) -> None:
    first, second = save(tmp_path / "in" / "cat.png", CAT), save(tmp_path / "in" / "coffee.png", COFFEE)
    done = run("colorize", gray, first, second, "-o", tmp_path / "out.png")
    assert (done.returncode, done.stderr) == (0, "")
    np.testing.assert_array_equal(load(tmp_path / "out.png"), psal.colorize(GRAY, [CAT, COFFEE], seed=0))


def test_references_of_folders_are_paired_by_name(tmp_path: Path, run_here: Run) -> None:
    for name in ("a.png", "b.png"):
        save(tmp_path / "photos" / name, GRAY)
        save(tmp_path / "colors" / name, COFFEE)
    (tmp_path / "colors" / "b.png").unlink()
    also = save(tmp_path / "cat.png", CAT)
    done = run_here("colorize", tmp_path / "photos", tmp_path / "colors", also, "-o", tmp_path / "out")
    assert (done.returncode, files_in(tmp_path / "out")) == (1, {"a.png"})
    assert f"needs one reference named b in {tmp_path / 'colors'}, found none" in done.stderr
    np.testing.assert_array_equal(load(tmp_path / "out" / "a.png"), psal.colorize(GRAY, [COFFEE, CAT], seed=0))


def test_hints_color_what_they_are_painted_on(gray: Path, tmp_path: Path) -> None:
    reference, hints = save(tmp_path / "in" / "cat.png", CAT), save(tmp_path / "in" / "hints.png", strokes())
    done = run("colorize", gray, reference, "--hints", hints, "-o", tmp_path / "out.png")
    assert (done.returncode, done.stderr) == (0, "")
    np.testing.assert_array_equal(load(tmp_path / "out.png"), psal.colorize(GRAY, CAT, hints=strokes(), seed=0))
    red = load(tmp_path / "out.png")[42:48, 32:38].astype(int)
    assert (red[..., 0] > red[..., 2] + 30).all()


def test_a_photo_left_gray_is_said_to_be(gray: Path, tmp_path: Path, run_here: Run) -> None:
    reference = save(tmp_path / "in" / "cat.png", CAT)
    done = run("colorize", gray, reference, "-o", tmp_path / "out.png")
    assert (done.returncode, done.stderr) == (0, "")
    assert "left gray, as it shows nothing of the reference: --no-fade" in done.stdout
    np.testing.assert_array_equal(load(tmp_path / "out.png"), np.repeat(GRAY[..., None], 3, 2))
    done = run_here("colorize", gray, reference, "-o", tmp_path / "full.png", "--no-fade")
    assert done.stdout == f"wrote {tmp_path / 'full.png'}\n"
    np.testing.assert_array_equal(load(tmp_path / "full.png"), psal.colorize(GRAY, CAT, seed=0, fade=False))


def test_wrong_references_and_hints_are_refused_in_one_line(gray: Path, tmp_path: Path, run_here: Run) -> None:
    reference, small = save(tmp_path / "in" / "cat.png", CAT), save(tmp_path / "in" / "small.png", COFFEE[1:])
    plain = save(tmp_path / "in" / "plain.png", np.repeat(GRAY[..., None], 3, 2))
    for arguments, words in (
        ((gray,), "reference must be a color picture, got a gray one"),
        ((reference, "--hints", small), "hints must have the size of the picture, 120 × 100 pixels, got 120 × 99"),
        ((reference, "--hints", plain), "hints have no strokes"),
        ((reference, "--hints", gray), "hints must be a color picture"),
        ((gray, reference), "reference[0] must be a color picture, got a gray one"),
        ((reference, reference, "--model", "network"), "takes one reference, got 2"),
    ):
        done = run_here("colorize", gray, *arguments, "-o", tmp_path / "out.png")
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
        assert words in done.stderr
    done = run_here("colorize", gray, "-o", tmp_path / "out.png")
    assert done.returncode == 2
    assert "Missing argument" in done.stderr
    done = run_here("colorize", gray, reference, tmp_path / "none.png", "-o", tmp_path / "out.png")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "none.png: no such file or folder" in done.stderr
    assert files_in(tmp_path) == {"in"}
