"""Masks, sources and guides on the command line."""

from pathlib import Path

import numpy as np
import pytest
from support.commands import HEIGHT, WIDTH, Run, files_in, load, mask, photo, run, save

import psal

HOLE = mask() > 0


def test_an_inverted_mask_is_black_in_the_hole(pair: tuple[Path, Path], tmp_path: Path, run_here: Run) -> None:
    black = save(tmp_path / "black.png", 255 - mask())
    assert run_here("inpaint", *pair, "-o", tmp_path / "white.png").returncode == 0
    assert run_here("inpaint", pair[0], black, "-o", tmp_path / "inverted.png", "--invert").returncode == 0
    np.testing.assert_array_equal(load(tmp_path / "inverted.png"), load(tmp_path / "white.png"))


def test_grow_and_feather_are_those_of_python(pair: tuple[Path, Path], tmp_path: Path, run_here: Run) -> None:
    done = run_here("inpaint", *pair, "-o", tmp_path / "out.png", "--grow", 2, "--feather", 3, "--seed", 4)
    assert (done.returncode, done.stderr) == (0, "")
    expected = psal.inpaint(photo(), mask(), grow=2, feather=3, seed=4)
    np.testing.assert_array_equal(load(tmp_path / "out.png"), expected)


def test_transparent_pixels_of_the_photo_are_filled_and_become_opaque(tmp_path: Path, run_here: Run) -> None:
    erased = save(tmp_path / "erased.png", np.dstack([photo(), 255 - mask()]))
    done = run_here("inpaint", erased, "--alpha", "-o", tmp_path / "out.png")
    assert (done.returncode, done.stderr) == (0, "")
    filled = load(tmp_path / "out.png")
    assert (filled[..., 3] == 255).all()
    np.testing.assert_array_equal(filled[..., :3], psal.inpaint(photo(), mask(), seed=0))


def test_transparent_pixels_of_the_mask_are_the_hole(pair: tuple[Path, Path], tmp_path: Path, run_here: Run) -> None:
    """As other programs save an erased copy of the photo."""
    erased = save(tmp_path / "erased.png", np.dstack([photo(), 255 - mask()]))
    done = run_here("inpaint", pair[0], erased, "--alpha", "-o", tmp_path / "out.png")
    assert (done.returncode, done.stderr) == (0, "")
    np.testing.assert_array_equal(load(tmp_path / "out.png"), psal.inpaint(photo(), mask(), seed=0))


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        ((), 2, "there is no mask: give one, or --alpha"),
        (("--alpha",), 1, "has no alpha to take a mask from"),
    ],
)
def test_a_photo_without_mask_or_alpha_is_refused(
    options: tuple[str, ...], code: int, words: str, pair: tuple[Path, Path], tmp_path: Path, run_here: Run
) -> None:
    done = run_here("inpaint", pair[0], *options, "-o", tmp_path / "out.png")
    assert (done.returncode, done.stderr.count("\n")) == (code, 1)
    assert words in done.stderr
    assert files_in(tmp_path) == {"in"}


def test_a_mask_without_a_hole_has_its_own_exit_code(pair: tuple[Path, Path], tmp_path: Path) -> None:
    white = save(tmp_path / "white.png", np.full((HEIGHT, WIDTH), 255, np.uint8))
    done = run("inpaint", pair[0], white, "--invert", "-o", tmp_path / "out.png", "--shifts", tmp_path / "map.npz")
    assert (done.returncode, done.stderr) == (3, "")
    assert (tmp_path / "out.png").read_bytes() == pair[0].read_bytes()
    assert len(psal.ShiftMap.open(tmp_path / "map.npz").target) == 0


def test_no_pixel_comes_from_outside_the_source(pair: tuple[Path, Path], tmp_path: Path, run_here: Run) -> None:
    source = np.zeros((HEIGHT, WIDTH), np.uint8)
    source[:, 20:] = 255
    allowed = save(tmp_path / "source.png", source)
    shifts = tmp_path / "map.npz"
    done = run_here("inpaint", *pair, "-o", tmp_path / "out.png", "--source", allowed, "--shifts", shifts)
    assert (done.returncode, done.stderr) == (0, "")
    found = psal.ShiftMap.open(shifts)
    assert (found.target == np.flatnonzero(HOLE)).all()
    assert (source.flat[found.source] > 0).all()
    assert not HOLE.flat[found.source].any()


def test_sources_and_guides_of_a_folder_are_paired_by_name(tmp_path: Path, run_here: Run) -> None:
    for name in ("a.png", "b.png"):
        save(tmp_path / "photos" / name, photo())
        save(tmp_path / "guides" / name, photo())
    (tmp_path / "guides" / "b.png").unlink()
    hole = save(tmp_path / "mask.png", mask())
    command = "inpaint", tmp_path / "photos", hole, "-o", tmp_path / "out", "--guide", tmp_path / "guides"
    done = run_here(*command, "--shifts", tmp_path / "maps")
    assert (done.returncode, files_in(tmp_path / "out"), files_in(tmp_path / "maps")) == (1, {"a.png"}, {"a.npz"})
    assert f"{tmp_path / 'photos' / 'b.png'}: needs one guide named b in {tmp_path / 'guides'}, found" in done.stderr
    np.testing.assert_array_equal(
        load(tmp_path / "out" / "a.png"), psal.inpaint(photo(), mask(), guide=photo(), seed=0)
    )


@pytest.mark.parametrize(("option", "name"), [("--guide", "guide"), ("--source", "source.png")])
def test_a_guide_or_source_of_another_size_is_refused(
    option: str, name: str, pair: tuple[Path, Path], tmp_path: Path, run_here: Run
) -> None:
    other = save(tmp_path / "source.png", mask(HEIGHT, WIDTH + 1))
    done = run_here("inpaint", *pair, "-o", tmp_path / "out.png", option, other)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert f"{name} is {WIDTH + 1} × {HEIGHT} pixels and the picture {WIDTH} × {HEIGHT}" in done.stderr
    assert not (tmp_path / "out.png").exists()


def test_a_shift_map_is_not_written_as_a_picture(pair: tuple[Path, Path], tmp_path: Path, run_here: Run) -> None:
    done = run_here("inpaint", *pair, "-o", tmp_path / "out.png", "--shifts", tmp_path / "map.png")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "let the name of a shift map end in .npz" in done.stderr
    assert files_in(tmp_path) == {"in"}


def test_variants_are_written_beside_the_best_one(pair: tuple[Path, Path], tmp_path: Path, run_here: Run) -> None:
    done = run_here("inpaint", *pair, "-o", tmp_path / "out.png", "--variants", 3, "--shifts", tmp_path / "map.npz")
    assert (done.returncode, done.stderr) == (0, "")
    expected = psal.inpaint(photo(), mask(), variants=3, seed=0)
    for name, picture in zip(("out", "out_variant2", "out_variant3"), expected, strict=True):
        np.testing.assert_array_equal(load(tmp_path / f"{name}.png"), picture)
    assert run_here("inpaint", *pair, "-o", tmp_path / "out.png", "--variants", 3).returncode != 0  # they exist


def test_variants_of_a_folder_are_all_written_or_none(tmp_path: Path, run_here: Run) -> None:
    """Their order depends on their count: a third one made later could be a copy of the second."""
    photos, out = tmp_path / "photos", tmp_path / "out"
    save(photos / "a.png", photo())
    command = "inpaint", photos, save(tmp_path / "mask.png", mask()), "-o", out, "--variants"
    assert run_here(*command, 2).returncode == 0
    assert files_in(out) == {"a.png", "a_variant2.png"}
    done = run_here(*command, 3)
    assert (done.returncode, files_in(out)) == (1, {"a.png", "a_variant2.png"})
    assert f"{out / 'a.png'} exists, but {out / 'a_variant3.png'} does not: add --overwrite" in done.stderr
    assert run_here(*command, 2).stdout.splitlines()[-1] == "0 done, 1 skipped (they exist), 0 failed"


def test_variants_without_a_hole_are_copies(tmp_path: Path, run_here: Run) -> None:
    empty = save(tmp_path / "mask.png", 0 * mask())
    done = run_here("inpaint", save(tmp_path / "in.png", photo()), empty, "-o", tmp_path / "out.png", "--variants", 2)
    assert done.returncode == 3
    np.testing.assert_array_equal(load(tmp_path / "out_variant2.png"), photo())


def test_variants_of_a_network_are_refused(pair: tuple[Path, Path], tmp_path: Path, run_here: Run) -> None:
    weights = save(tmp_path / "weights.png", photo())
    command = "inpaint", *pair, "-o", tmp_path / "out.png", "--variants", 2, "--model", "network", "--weights", weights
    done = run_here(*command)
    assert (done.returncode, done.stderr.count("\n"), "variants are for model 'patches'" in done.stderr) == (1, 1, True)
