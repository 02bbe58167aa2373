import os
import resource
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.commands import COMMAND, HEIGHT, WIDTH, Run, files_in, load, mask, photo, run, save

from psal.io.photo import Photo
from psal.version import __version__


def test_version_and_help(run_here: Run) -> None:
    assert run("--version").stdout.strip() == f"psal {__version__}"
    listed = run_here("--help").stdout
    assert all(name in listed for name in ("inpaint", "colorize", "reconstruct", "upscale", "samples"))


def test_inpaint_fills_the_hole_and_only_the_hole(pair: tuple[Path, Path], tmp_path: Path, run_here: Run) -> None:
    out = tmp_path / "new folder" / "out.png"
    done = run_here("inpaint", *pair, "-o", out, "--compare", "--threads", 1)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"wrote {out}\n", "")
    hole = mask() > 0
    np.testing.assert_array_equal(load(out)[~hole], photo()[~hole])
    assert (load(out)[hole] != photo()[hole]).any()
    compared = load(out.with_name("out_compare.png"))
    np.testing.assert_array_equal(compared[:, :WIDTH], photo())
    np.testing.assert_array_equal(compared[:, -WIDTH:], load(out))
    assert files_in(out.parent) == {"out.png", "out_compare.png"}


def test_the_same_seed_gives_the_same_file(pair: tuple[Path, Path], tmp_path: Path, run_here: Run) -> None:
    for name in ("one", "two"):
        assert run_here("inpaint", *pair, "-o", tmp_path / f"{name}.png", "--seed", 5).returncode == 0
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "two.png").read_bytes()


@pytest.mark.parametrize("model", [(), ("--model", "network")])
def test_colorize_writes_a_color_picture(model: tuple[str, ...], tmp_path: Path, run_here: Run) -> None:
    gray = save(tmp_path / "gray.png", photo().mean(2).astype(np.uint8))
    reference = save(tmp_path / "reference.png", photo())
    done = run_here("colorize", gray, reference, "-o", tmp_path / "out.png", *model)
    assert (done.returncode, done.stderr) == (0, "")
    assert load(tmp_path / "out.png").shape == (HEIGHT, WIDTH, 3)


def test_reconstruct_writes_the_picture_and_the_shifts(tmp_path: Path, run_here: Run) -> None:
    target = save(tmp_path / "target.png", photo())
    reference = save(tmp_path / "reference.png", photo(31, 29))
    done = run_here("reconstruct", target, reference, "-o", tmp_path / "out.png", "--shifts", tmp_path / "shifts.png")
    assert (done.returncode, done.stderr) == (0, "")
    assert load(tmp_path / "out.png").shape == (HEIGHT, WIDTH, 3)
    assert load(tmp_path / "shifts.png").shape[:2] == (HEIGHT, WIDTH)


def test_upscale_writes_a_larger_picture(tmp_path: Path, run_here: Run) -> None:
    small = save(tmp_path / "small.png", photo())
    done = run_here("upscale", small, "-o", tmp_path / "out.jpg", "--scale", 1.4, "--compare")
    assert (done.returncode, done.stderr) == (0, "")
    assert load(tmp_path / "out.jpg").shape == (round(1.4 * HEIGHT), round(1.4 * WIDTH), 3)
    assert load(tmp_path / "out_compare.png").shape[0] == round(1.4 * HEIGHT)


@pytest.mark.parametrize(
    ("command", "option", "value", "words"),
    [
        ("upscale", "--scale", "5", "less than or equal to 4"),
        ("upscale", "--scale", "nan", "less than or equal to 4"),
        ("upscale", "--scale", "1", "1 is not above 1"),
        ("upscale", "--scale", "big", "valid number"),
        ("upscale", "--seed", "1.5", "valid integer"),
        ("upscale", "--threads", "0", "greater than or equal to 1"),
        ("colorize", "--model", "magic", "'magic' is not one of 'patches'"),
    ],
)
def test_an_option_that_cannot_be_used_is_named_with_what_is_expected(
    command: str, option: str, value: str, words: str, pair: tuple[Path, Path], run_here: Run
) -> None:
    pictures = pair if command == "colorize" else pair[:1]
    done = run_here(command, *pictures, "-o", pair[0].with_name("out.png"), option, value)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"Invalid value for '{option}'" in done.stderr
    assert words in done.stderr


def test_a_seed_beyond_64_bits_is_refused_before_anything_is_written(pair: tuple[Path, Path], run_here: Run) -> None:
    done = run_here("upscale", pair[0], "-o", f"{pair[0].with_name('new')}/", "--seed", 2**63)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "seed must fit into 64 bits" in done.stderr
    assert not pair[0].with_name("new").exists()


def test_what_a_format_cannot_hold_is_refused_before_the_work(tmp_path: Path, run_here: Run) -> None:
    """The reference is damaged: had it been read, the message would say so."""
    transparent = save(tmp_path / "photo.png", np.dstack([photo(), mask()]))
    (tmp_path / "reference.png").write_text("Dear all")
    done = run_here("reconstruct", transparent, tmp_path / "reference.png", "-o", tmp_path / "out.jpg")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert f"{tmp_path / 'out.jpg'} cannot be written: JPEG has no alpha" in done.stderr


def test_a_depth_that_is_lost_is_said(tmp_path: Path, run_here: Run) -> None:
    Photo(photo().astype(np.uint16) * 257).save(tmp_path / "deep.png")
    out = tmp_path / "out.jpg"
    done = run_here("upscale", tmp_path / "deep.png", "-o", out)
    assert done.stdout == f"wrote {out} (8 bits per channel: JPEG has no 16)\n"


def test_a_picture_without_a_hole_is_copied_or_said_to_be_of_a_new_format(tmp_path: Path, run_here: Run) -> None:
    original = save(tmp_path / "photo.jpg", photo(), quality=60)
    hole = save(tmp_path / "mask.png", np.zeros((HEIGHT, WIDTH), np.uint8))
    for name, words in (("out.jpeg", "copied"), ("out.png", "converted only")):
        done = run_here("inpaint", original, hole, "-o", tmp_path / name)
        assert done.stdout == f"wrote {tmp_path / name} (the mask has no white in it: {words})\n"
        assert done.returncode == 3
    assert (tmp_path / "out.jpeg").read_bytes() == original.read_bytes()
    np.testing.assert_array_equal(load(tmp_path / "out.png"), load(original))


@pytest.mark.parametrize("name", ["photo.png", "", None])
def test_nobody_needs_to_listen(name: str | None, pair: tuple[Path, Path], tmp_path: Path) -> None:
    """It edits a picture and a folder, and tells its version, when nothing reads its output."""
    out = tmp_path / f"out{Path(name or '').suffix}"
    arguments = ["--version"] if name is None else ["upscale", str(pair[0].parent / name), "-o", str(out)]
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run([*COMMAND, *arguments], stdout=writing, stderr=subprocess.PIPE, timeout=300, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")
    assert out.exists() == (name is not None)


def test_a_failed_job_exits_with_1_and_leaves_nothing(pair: tuple[Path, Path], tmp_path: Path, run_here: Run) -> None:
    good, hole = pair
    cut = tmp_path / "in" / "cut.png"
    cut.write_bytes(good.read_bytes()[:200])
    for way, first, second in ((run, cut, hole), (run_here, good, cut)):
        done = way("inpaint", first, second, "-o", tmp_path / "out.png")
        assert (done.returncode, done.stdout) == (1, "")
        assert f"{cut} is damaged or cut off" in done.stderr
        assert done.stderr.count("\n") == 1
    assert files_in(tmp_path) == {"in"}


def test_a_write_that_fails_halfway_leaves_what_was_there(pair: tuple[Path, Path], tmp_path: Path) -> None:
    """A limit on the size of files stands for the full disk: the write begins, and then fails."""
    out = tmp_path / "out" / "out.png"
    out.parent.mkdir()
    out.write_bytes(b"before")
    limited = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500))}
    done = run("inpaint", *pair, "-o", out, "--overwrite", env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}, **limited)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"{out} cannot be written: " in done.stderr
    assert done.stderr.count("\n") == 1
    assert files_in(out.parent) == {"out.png"}
    assert out.read_bytes() == b"before"


def test_ctrl_c_stops_without_half_a_file(tmp_path: Path) -> None:
    save(tmp_path / "photos" / "a.png", photo())
    save(tmp_path / "photos" / "b.png", photo(600, 700))
    command = [*COMMAND, "upscale", str(tmp_path / "photos"), "-o", str(tmp_path / "out")]
    heed = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # a background job would hand down that it is ignored
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, preexec_fn=heed, **pipes) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == f"wrote {tmp_path / 'out' / 'a.png'}\n"  # so b is next
        process.send_signal(signal.SIGINT)
        assert process.stderr.read() == "interrupted\n"
        assert process.wait(timeout=60) == 130
    assert files_in(tmp_path / "out") == {"a.png"}


@pytest.mark.parametrize("module", ["typer", "PIL"])
def test_a_missing_dependency_is_named_with_what_to_install(module: str, pair: tuple[Path, Path]) -> None:
    script = f"import sys; sys.modules['{module}'] = None; import psal.cli.main; psal.cli.main.main()"
    command = [sys.executable, "-c", script, "inpaint", *map(str, pair), "-o", str(pair[0].with_name("out.png"))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: {module}")
    assert "pip install 'psal[edit]'" in done.stderr
    assert done.stderr.count("\n") == 1
