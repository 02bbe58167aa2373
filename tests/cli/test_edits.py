import os
import resource
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

import psal.cli.main
import psal.editing.upscale
from psal.io.photo import Photo
from psal.version import __version__

COMMAND = (sys.executable, "-m", "psal.cli")
HEIGHT, WIDTH = 27, 35
SMALLEST = 7  # a patch
Run = Callable[..., subprocess.CompletedProcess[str]]


def run(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """The command line as a process; whatever happens, there is no traceback."""
    done = subprocess.run(
        [*COMMAND, *map(str, arguments)], capture_output=True, text=True, timeout=300, check=False, **options
    )
    assert "Traceback" not in done.stderr
    return done


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


def photo(height: int = HEIGHT, width: int = WIDTH) -> NDArray[Any]:
    """Stripes with some noise, uint8 ``(H, W, 3)``."""
    rows, columns = np.mgrid[:height, :width]
    stripes = 120 + 80 * np.sin(0.9 * columns + 0.3 * rows)[..., None] * np.array([1.0, 0.6, -0.4])
    noise = np.random.default_rng(0).normal(0, 4, stripes.shape)
    return np.asarray((stripes + noise).clip(0, 255), np.uint8)


def mask(height: int = HEIGHT, width: int = WIDTH) -> NDArray[Any]:
    """A hole in the middle, uint8 ``(H, W)``."""
    hole = np.zeros((height, width), np.uint8)
    hole[height // 3 : height // 2, width // 3 : width // 2] = 255
    return hole


def save(path: Path, pixels: NDArray[Any], **options: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path, **options)
    return path


def load(path: Path) -> NDArray[Any]:
    with Image.open(path) as image:
        return np.asarray(image)


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    """A photo and a mask."""
    return save(tmp_path / "in" / "photo.png", photo()), save(tmp_path / "in" / "mask.png", mask())


def files_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} if folder.exists() else set()


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
def test_colorize_writes_a_colour_picture(model: tuple[str, ...], tmp_path: Path, run_here: Run) -> None:
    grey = save(tmp_path / "grey.png", photo().mean(2).astype(np.uint8))
    reference = save(tmp_path / "reference.png", photo())
    done = run_here("colorize", grey, reference, "-o", tmp_path / "out.png", *model)
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


def test_a_folder_run_goes_on_after_bad_files_and_skips_what_is_done(tmp_path: Path, run_here: Run) -> None:
    photos, masks, out = tmp_path / "photos", tmp_path / "masks", tmp_path / "out"
    for name in (
        "good.png",
        "palette.png",
        "uncut.jpg",
        "other_size.png",
        "all_hole.png",
        "photo_as_mask.png",
        "no_hole.png",
        "no_mask.png",
    ):
        save(photos / name, photo())
    Image.fromarray(photo()).quantize(32).save(photos / "palette.png")
    Image.fromarray(photo()).convert("CMYK").save(photos / "cmyk.jpg")
    Image.fromarray(photo()).save(photos / "film.gif", save_all=True, append_images=[Image.fromarray(photo()[::-1])])
    (photos / "cut.jpg").write_bytes((photos / "uncut.jpg").read_bytes()[:600])
    (photos / "uncut.jpg").unlink()
    (photos / "letter.png").write_text("Dear all")
    (photos / "letter.txt").write_text("not a picture, and does not say so")
    save(photos / "tiny.png", photo(SMALLEST - 2, WIDTH))
    for path in photos.iterdir():
        save(masks / f"{path.stem}.png", mask())
    save(masks / "other_size.png", mask(HEIGHT, WIDTH + 1))
    save(masks / "all_hole.png", np.full((HEIGHT, WIDTH), 255, np.uint8))
    save(masks / "no_hole.png", np.zeros((HEIGHT, WIDTH), np.uint8))
    save(masks / "tiny.png", mask(SMALLEST - 2, WIDTH))
    save(masks / "photo_as_mask.png", photo())
    (masks / "no_mask.png").unlink()
    bad = {"cmyk.jpg", "film.gif", "cut.jpg", "letter.png", "tiny.png"}
    bad |= {"other_size.png", "all_hole.png", "photo_as_mask.png", "no_mask.png"}
    good = {"good.png", "palette.png", "no_hole.png"}

    done = run("inpaint", photos, masks, "-o", out)
    assert done.returncode == 1
    assert files_in(out) == good
    assert done.stdout.splitlines()[-1] == "3 done, 0 skipped as done before, 9 failed"
    assert f"wrote {out / 'no_hole.png'} (the mask has no white in it, so the file is a copy)" in done.stdout
    assert (out / "no_hole.png").read_bytes() == (photos / "no_hole.png").read_bytes()
    lines = done.stderr.splitlines()
    assert {next(name for name in bad if str(photos / name) in line) for line in lines} == bad
    assert len(lines) == len(bad)
    assert all(line.startswith("error: ") for line in lines)
    said = dict.fromkeys(bad, "") | {name: line for line in lines for name in bad if str(photos / name) in line}
    assert "convert it to RGB" in said["cmyk.jpg"]
    assert "has 2 frames" in said["film.gif"]
    assert "damaged or cut off" in said["cut.jpg"]
    assert "not a picture" in said["letter.png"]
    assert f"{masks / 'other_size.png'} is {WIDTH + 1} × {HEIGHT} pixels" in said["other_size.png"]
    assert f"{masks / 'photo_as_mask.png'} is not a mask" in said["photo_as_mask.png"]
    assert f"needs one mask named no_mask in {masks}" in said["no_mask.png"]

    before = (out / "good.png").stat().st_mtime_ns
    (out / "palette.png").unlink()
    again = run_here("inpaint", photos, masks, "-o", out)
    assert again.stdout.splitlines()[-1] == "1 done, 2 skipped as done before, 9 failed"
    assert (out / "good.png").stat().st_mtime_ns == before
    assert files_in(out) == good


def test_one_reference_serves_a_folder_and_overwrite_does_all_again(tmp_path: Path, run_here: Run) -> None:
    for name in ("a.png", "b.jpg"):
        save(tmp_path / "photos" / name, photo().mean(2).astype(np.uint8))
    reference = save(tmp_path / "reference.png", photo())
    save(tmp_path / "out" / "a.png", photo())
    done = run_here("colorize", tmp_path / "photos", reference, "-o", tmp_path / "out", "--overwrite")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "2 done, 0 skipped as done before, 0 failed"
    assert files_in(tmp_path / "out") == {"a.png", "b.jpg"}


def test_a_folder_run_replaces_no_extra_and_adds_those_that_are_missing(tmp_path: Path, run_here: Run) -> None:
    photos, out, shifts = tmp_path / "photos", tmp_path / "out", tmp_path / "shifts"
    for name in ("a.jpg", "b.png"):
        save(photos / name, photo())
    shifts.mkdir()
    (shifts / "a.png").write_text("precious")
    command = "reconstruct", photos, save(tmp_path / "reference.png", photo(31, 29)), "-o", out
    done = run_here(*command, "--shifts", shifts)
    assert done.returncode == 1
    assert f"{photos / 'a.jpg'}: {shifts / 'a.png'} is there already, but {out / 'a.jpg'} is not" in done.stderr
    assert (files_in(out), (shifts / "a.png").read_text()) == ({"b.png"}, "precious")

    assert run_here(*command).stdout.splitlines()[-1] == "1 done, 1 skipped as done before, 0 failed"
    before = [(path, path.stat().st_mtime_ns) for path in (out / "a.jpg", out / "b.png", shifts / "b.png")]
    (out / "b_compare.png").write_text("precious")
    done = run_here(*command, "--shifts", shifts, "--compare", "--seed", 9)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        f"wrote {out / 'a_compare.png'} ({out / 'a.jpg'} stays as it was)",
        "1 done, 1 skipped as done before, 0 failed",
    ]
    assert [(path, path.stat().st_mtime_ns) for path, _ in before] == before
    assert ((shifts / "a.png").read_text(), (out / "b_compare.png").read_text()) == ("precious", "precious")
    np.testing.assert_array_equal(load(out / "a_compare.png")[:, -WIDTH:], load(out / "a.jpg"))

    (shifts / "b.png").unlink()
    assert run_here(*command, "--shifts", shifts).stdout.startswith(f"wrote {shifts / 'b.png'} ({out / 'b.png'} stays")
    assert run_here(*command, "--shifts", shifts, "--compare", "--overwrite").returncode == 0
    assert load(shifts / "a.png").shape == load(out / "a.jpg").shape
    assert load(out / "b_compare.png").shape[0] == HEIGHT


def test_shifts_of_a_folder_are_pngs(tmp_path: Path, run_here: Run) -> None:
    save(tmp_path / "photos" / "a.jpg", photo())
    reference, shifts = save(tmp_path / "reference.png", photo(31, 29)), tmp_path / "shifts"
    assert run_here("reconstruct", tmp_path / "photos", reference, "-o", tmp_path, "--shifts", shifts).returncode == 0
    assert files_in(shifts) == {"a.png"}
    with Image.open(shifts / "a.png") as image:
        assert image.format == "PNG"


def test_one_file_under_two_names_is_not_written_twice(tmp_path: Path, run_here: Run) -> None:
    target, reference = save(tmp_path / "in" / "a.png", photo()), save(tmp_path / "reference.png", photo())
    (tmp_path / "link").symlink_to(tmp_path)
    for other in (tmp_path / "in" / ".." / "out.png", tmp_path / "link" / "out.png"):
        done = run_here("reconstruct", target, reference, "-o", tmp_path / "out.png", "--shifts", other)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert "would be written 2 times" in done.stderr
    assert not (tmp_path / "out.png").exists()


def test_a_folder_of_photos_is_not_written_to_the_name_of_a_picture(tmp_path: Path, run_here: Run) -> None:
    save(tmp_path / "photos" / "a.png", photo())
    reference, out = save(tmp_path / "reference.png", photo()), tmp_path / "out"
    for options in (["-o", tmp_path / "some.jpg"], ["-o", out, "--shifts", tmp_path / "some.PNG"]):
        done = run_here("reconstruct", tmp_path / "photos", reference, *options)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert (
            f"{options[-1]} is the name of a picture, and {tmp_path / 'photos'} a folder: give a folder" in done.stderr
        )
    assert files_in(tmp_path) == {"photos", "reference.png"}
    (tmp_path / "some.jpg").mkdir()
    assert run_here("reconstruct", tmp_path / "photos", reference, "-o", tmp_path / "some.jpg").returncode == 0
    assert files_in(tmp_path / "some.jpg") == {"a.png"}


def test_a_slash_at_its_end_makes_a_new_name_a_folder(pair: tuple[Path, Path], tmp_path: Path, run_here: Run) -> None:
    done = run_here("inpaint", *pair, "-o", f"{tmp_path / 'new'}/")
    assert (done.returncode, done.stdout) == (0, f"wrote {tmp_path / 'new' / 'photo.png'}\n")
    done = run_here("inpaint", *pair, "-o", f"{tmp_path / 'new' / 'photo.png'}/")
    assert done.returncode == 2
    assert f"{tmp_path / 'new' / 'photo.png'} is a file" in done.stderr


def test_wrong_usage_says_what_to_do_and_exits_with_2(pair: tuple[Path, Path], tmp_path: Path, run_here: Run) -> None:
    good, hole = pair
    before = good.read_bytes(), hole.read_bytes()
    nowhere, there, empty = tmp_path / "nowhere.png", save(tmp_path / "there.png", photo()), tmp_path / "empty"
    empty.mkdir()
    cases: list[tuple[Run, Path, Path, Path, str]] = [
        (run, nowhere, hole, tmp_path / "out.png", f"{nowhere}: there is no such file"),
        (run_here, good, nowhere, tmp_path / "out.png", f"{nowhere}: there is no such file"),
        (run, good, hole, there, f"{there} is there already: add --overwrite"),
        (run, good, hole, good, f"{good} would be written over what is read"),
        (run_here, good, hole, hole, f"{hole} would be written over what is read"),
        (run_here, good.parent, hole, good.parent, "would be written over what is read"),
        (run_here, good.parent, hole, there, f"{there} is a file"),
        (run_here, good, hole, tmp_path / "out.xyz", f"{tmp_path / 'out.xyz'} cannot be written: let its name end in"),
        (run_here, good, empty, tmp_path / "out.png", f"{empty} has no pictures in it"),
        (run_here, empty, hole, tmp_path / "out", f"{empty} has no pictures in it"),
    ]
    for way, first, second, out, words in cases:
        options = ["--overwrite"] if "written over" in words else []
        done = way("inpaint", first, second, "-o", out, *options)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("error: ")
        assert words in done.stderr
        assert done.stderr.count("\n") == 1
    assert run_here("inpaint", good, hole).returncode == 2
    assert (good.read_bytes(), hole.read_bytes()) == before
    assert files_in(tmp_path) == {"in", "empty", "there.png"}


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--scale", "5", "5 is too much: give a number up to 4"),
        ("--scale", "1", "1 would not enlarge: give a number above 1"),
        ("--scale", "nan", "nan would not enlarge"),
        ("--scale", "big", "big is not a number"),
        ("--seed", "1.5", "1.5 is not a whole number"),
        ("--seed", str(2**63), "seed must fit into 64 bits"),
        ("--threads", "0", "0 cores cannot do anything: give 1 or more"),
    ],
)
def test_a_number_out_of_range_is_refused_with_the_limit(
    option: str, value: str, words: str, pair: tuple[Path, Path], run_here: Run
) -> None:
    done = run_here("upscale", pair[0], "-o", pair[0].with_name("out.png"), option, value)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"Invalid value for '{option}': {words}" in done.stderr
    assert psal.cli.main.LARGEST_SCALE == psal.editing.upscale.LARGEST_SCALE


def test_an_unknown_model_of_colours_is_refused(pair: tuple[Path, Path], run_here: Run) -> None:
    done = run_here("colorize", pair[0], pair[0], "-o", pair[0].with_name("out.png"), "--model", "magic")
    assert (done.returncode, done.stdout) == (2, "")
    assert "Invalid value for '--model': magic is not a model: give patches or network" in done.stderr
    assert psal.cli.main.COLOR_MODELS == psal.editing.colorize.MODELS


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
    assert done.stdout == f"wrote {out} (8 bits a channel instead of 16, as JPEG has no more)\n"


def test_a_picture_without_a_hole_is_copied_or_said_to_be_of_a_new_format(tmp_path: Path, run_here: Run) -> None:
    original = save(tmp_path / "photo.jpg", photo(), quality=60)
    hole = save(tmp_path / "mask.png", np.zeros((HEIGHT, WIDTH), np.uint8))
    for name, words in (("out.jpeg", "so the file is a copy"), ("out.png", "so only the format is new")):
        done = run_here("inpaint", original, hole, "-o", tmp_path / name)
        assert done.stdout == f"wrote {tmp_path / name} (the mask has no white in it, {words})\n"
    assert (tmp_path / "out.jpeg").read_bytes() == original.read_bytes()
    np.testing.assert_array_equal(load(tmp_path / "out.png"), load(original))


@pytest.mark.parametrize("name", ["photo.png", "", None])
def test_nobody_needs_to_listen(name: str | None, pair: tuple[Path, Path], tmp_path: Path) -> None:
    """Of a picture, a folder and the version."""
    out = tmp_path / f"out{Path(name or '').suffix}"
    arguments = ["--version"] if name is None else ["upscale", str(pair[0].parent / name), "-o", str(out)]
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run([*COMMAND, *arguments], stdout=writing, stderr=subprocess.PIPE, timeout=300, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")
    assert out.exists() == (name is not None)


def test_two_pictures_are_never_written_to_one_file(tmp_path: Path, run_here: Run) -> None:
    Image.fromarray(photo()).save(tmp_path / "a.gif")
    save(tmp_path / "a.png", photo())
    done = run_here("upscale", tmp_path, "-o", tmp_path / "out")
    assert done.returncode == 2
    assert f"{tmp_path / 'out' / 'a.png'} would be written 2 times" in done.stderr


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


def test_a_folder_that_cannot_be_written_to_is_named(pair: tuple[Path, Path], tmp_path: Path) -> None:
    folder = tmp_path / "locked"
    folder.mkdir(mode=0o555)
    if os.access(folder, os.W_OK):  # root may write anywhere but where the kernel keeps its own
        folder = Path("/proc")
    done = run("inpaint", *pair, "-o", folder / "out.png")
    assert (done.returncode, done.stdout) == (1, "")
    assert f"cannot write to the folder {folder}" in done.stderr
    assert done.stderr.count("\n") == 1


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
        assert process.stderr.read() == "stopped\n"
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


def test_samples_are_written_with_commands_that_fit(tmp_path: Path, run_here: Run) -> None:
    folder = tmp_path / "my samples"
    done = run_here("samples", folder)
    assert (done.returncode, done.stderr) == (0, "")
    commands = [line.split()[:2] for line in done.stdout.splitlines() if line.startswith("  psal ")]
    assert commands == [["psal", name] for name in ("inpaint", "colorize", "reconstruct", "upscale")]
    assert all(f"'{folder / name}'" in done.stdout for name in files_in(folder))
    assert len(files_in(folder)) == 7
    again = run_here("samples", folder)
    assert again.returncode == 2
    assert "is there already: add --overwrite" in again.stderr
    assert again.stderr.count("\n") == 1


def test_the_commands_of_the_readme_run_in_order(
    tmp_path: Path, run_here: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    section = (Path(__file__).parent.parent / "README.md").read_text().split("## Edit photographs")[1].split("## ")[0]
    commands = [shlex.split(line, comments=True) for line in section.splitlines() if line.startswith("psal ")]
    assert [command[1] for command in commands] == ["samples", "inpaint", "colorize", "reconstruct", "upscale"]
    monkeypatch.chdir(tmp_path)
    for command in commands:
        done = run_here(*command[1:])
        assert (done.returncode, done.stderr) == (0, "")
    assert files_in(tmp_path) == {"samples", *(command[-1] for command in commands[1:])}
