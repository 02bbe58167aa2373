import errno
import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from support.commands import HEIGHT, WIDTH, Run, files_in, load, mask, photo, run, save

SMALLEST = 7  # a patch


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
    assert done.stdout.splitlines()[-1] == "3 done, 0 skipped (they exist), 9 failed"
    assert f"passed over {photos / 'letter.txt'}: not the name of a picture" in done.stdout
    assert f"passed over {masks / 'letter.png'}: no photo" not in done.stdout
    assert f"wrote {out / 'no_hole.png'} (the mask has no white in it: copied)" in done.stdout
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
    assert again.stdout.splitlines()[-1] == "1 done, 2 skipped (they exist), 9 failed"
    assert (out / "good.png").stat().st_mtime_ns == before
    assert files_in(out) == good


def test_one_reference_serves_a_folder_and_overwrite_does_all_again(tmp_path: Path, run_here: Run) -> None:
    for name in ("a.png", "b.jpg"):
        save(tmp_path / "photos" / name, photo().mean(2).astype(np.uint8))
    reference = save(tmp_path / "reference.png", photo())
    save(tmp_path / "out" / "a.png", photo())
    done = run_here("colorize", tmp_path / "photos", reference, "-o", tmp_path / "out", "--overwrite")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "2 done, 0 skipped (they exist), 0 failed"
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
    assert f"{photos / 'a.jpg'}: {shifts / 'a.png'} exists, but {out / 'a.jpg'} does not" in done.stderr
    assert (files_in(out), (shifts / "a.png").read_text()) == ({"b.png"}, "precious")

    assert run_here(*command).stdout.splitlines()[-1] == "1 done, 1 skipped (they exist), 0 failed"
    before = [(path, path.stat().st_mtime_ns) for path in (out / "a.jpg", out / "b.png", shifts / "b.png")]
    (out / "b_compare.png").write_text("precious")
    done = run_here(*command, "--shifts", shifts, "--compare", "--seed", 9)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        f"passed over {photos / 'b.png'}: {out / 'b.png'} exists",
        f"wrote {out / 'a_compare.png'} ({out / 'a.jpg'} is kept as it was)",
        "1 done, 1 skipped (they exist), 0 failed",
    ]
    assert [(path, path.stat().st_mtime_ns) for path, _ in before] == before
    assert ((shifts / "a.png").read_text(), (out / "b_compare.png").read_text()) == ("precious", "precious")
    np.testing.assert_array_equal(load(out / "a_compare.png")[:, -WIDTH:], load(out / "a.jpg"))

    (shifts / "b.png").unlink()
    assert f"wrote {shifts / 'b.png'} ({out / 'b.png'} is kept" in run_here(*command, "--shifts", shifts).stdout
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
        assert f"{options[-1]} is a picture's name, but {tmp_path / 'photos'} is a folder: give a folder" in done.stderr
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


def test_a_new_name_without_a_suffix_is_a_folder(pair: tuple[Path, Path], tmp_path: Path, run_here: Run) -> None:
    done = run_here("inpaint", *pair, "-o", tmp_path / "new")
    assert (done.returncode, done.stdout) == (0, f"wrote {tmp_path / 'new' / 'photo.png'}\n")
    (tmp_path / "file").write_text("precious")
    done = run_here("inpaint", *pair, "-o", tmp_path / "file")
    assert (done.returncode, (tmp_path / "file").read_text()) == (2, "precious")
    assert f"{tmp_path / 'file'} is a file" in done.stderr


def test_every_file_that_is_passed_over_is_named_with_the_reason(tmp_path: Path, run_here: Run) -> None:
    photos, masks, out = tmp_path / "photos", tmp_path / "masks", tmp_path / "out"
    save(photos / "a.png", photo())
    save(photos / "done.png", photo())
    save(out / "done.png", photo())
    for name in ("a.png", "done.png", "other.png"):
        save(masks / name, mask())
    (photos / "notes.txt").write_text("x")
    (photos / ".hidden.png").write_text("x")
    (photos / "sub").mkdir()
    done = run_here("inpaint", photos, masks, "-o", out)
    assert (done.returncode, done.stderr) == (0, "")
    assert {line.removeprefix("passed over ") for line in done.stdout.splitlines()[:-2]} == {
        f"{photos / 'notes.txt'}: not the name of a picture",
        f"{photos / '.hidden.png'}: hidden",
        f"{photos / 'sub'}: a folder",
        f"{masks / 'other.png'}: no photo is named other",
        f"{photos / 'done.png'}: {out / 'done.png'} exists",
    }


def test_a_full_disk_stops_a_folder_run_at_once(tmp_path: Path, run_here: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a.png", "b.png", "c.png"):
        save(tmp_path / "photos" / name, photo())
    hole = save(tmp_path / "mask.png", mask())
    synced: list[int] = []

    def fail_at_the_second(descriptor: int) -> None:
        synced.append(descriptor)
        if len(synced) > 1:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fail_at_the_second)
    done = run_here("inpaint", tmp_path / "photos", hole, "-o", tmp_path / "out")
    assert (done.returncode, len(synced), files_in(tmp_path / "out")) == (1, 2, {"a.png"})
    assert done.stdout.splitlines()[-1] == "1 done, 0 skipped (they exist), 1 failed"
    assert f"{tmp_path / 'out' / 'b.png'} cannot be written: No space left on device" in done.stderr
    assert "(stopped, with 1 more to do)" in done.stderr
    assert done.stderr.count("\n") == 1


def test_wrong_usage_says_what_to_do_and_exits_with_2(pair: tuple[Path, Path], tmp_path: Path, run_here: Run) -> None:
    good, hole = pair
    before = good.read_bytes(), hole.read_bytes()
    nowhere, there, empty = tmp_path / "nowhere.png", save(tmp_path / "there.png", photo()), tmp_path / "empty"
    empty.mkdir()
    cases: list[tuple[Run, Path, Path, Path, str]] = [
        (run, nowhere, hole, tmp_path / "out.png", f"{nowhere}: no such file or folder"),
        (run_here, good, nowhere, tmp_path / "out.png", f"{nowhere}: no such file or folder"),
        (run, good, hole, there, f"{there} exists: add --overwrite"),
        (run, good, hole, good, f"{good} is an input and would be overwritten"),
        (run_here, good, hole, hole, f"{hole} is an input and would be overwritten"),
        (run_here, good.parent, hole, good.parent, "is an input and would be overwritten"),
        (run_here, good.parent, hole, there, f"{there} is a file"),
        (run_here, good, hole, tmp_path / "out.xyz", f"{tmp_path / 'out.xyz'} cannot be written: let its name end in"),
        (run_here, good, empty, tmp_path / "out.png", f"{empty} has no pictures"),
        (run_here, empty, hole, tmp_path / "out", f"{empty} has no pictures"),
    ]
    for way, first, second, out, words in cases:
        options = ["--overwrite"] if "overwritten" in words else []
        done = way("inpaint", first, second, "-o", out, *options)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("error: ")
        assert words in done.stderr
        assert done.stderr.count("\n") == 1
    assert run_here("inpaint", good, hole).returncode == 2
    assert (good.read_bytes(), hole.read_bytes()) == before
    assert files_in(tmp_path) == {"in", "empty", "there.png"}


def test_two_pictures_are_never_written_to_one_file(tmp_path: Path, run_here: Run) -> None:
    Image.fromarray(photo()).save(tmp_path / "a.gif")
    save(tmp_path / "a.png", photo())
    done = run_here("upscale", tmp_path, "-o", tmp_path / "out")
    assert done.returncode == 2
    both = f"{tmp_path / 'a.gif'} and {tmp_path / 'a.png'} would both be written to {tmp_path / 'out' / 'a.png'}"
    assert both in done.stderr


def test_a_folder_that_cannot_be_written_to_is_named(pair: tuple[Path, Path], tmp_path: Path) -> None:
    folder = tmp_path / "locked"
    folder.mkdir(mode=0o555)
    if os.access(folder, os.W_OK):  # root may write anywhere but where the kernel keeps its own
        folder = Path("/proc")
    done = run("inpaint", *pair, "-o", folder / "out.png")
    assert (done.returncode, done.stdout) == (1, "")
    assert f"cannot write to the folder {folder}" in done.stderr
    assert done.stderr.count("\n") == 1
