"""``psal apply-shifts``: other layers are filled with the sources of a fill, bit for bit."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from numpy.typing import NDArray
from support.commands import HEIGHT, WIDTH, Run, files_in, load, mask, photo, run, save

import psal

HOLE = mask() > 0


@pytest.fixture
def shifts(tmp_path: Path) -> Path:
    """A shift map of the photo's hole."""
    _, found = psal.inpaint(photo(), mask(), seed=0, return_shifts=True)
    found.save(tmp_path / "map.npz")
    return tmp_path / "map.npz"


def layer(dtype: str, channels: int | None = None) -> NDArray[Any]:
    shape = (HEIGHT, WIDTH) if channels is None else (HEIGHT, WIDTH, channels)
    values = np.random.default_rng(1).integers(0, 2**16, shape)
    return values.astype(dtype) if dtype[0] != "f" else (values / 7).astype(dtype)


def expected(shifts: Path, pixels: NDArray[Any]) -> NDArray[Any]:
    sources = psal.ShiftMap.open(shifts).sources()
    return pixels[sources[..., 0], sources[..., 1]]


@pytest.mark.parametrize(
    ("dtype", "channels"), [("uint16", None), ("float32", None), ("int32", None), ("uint8", 7), ("float64", 3)]
)
def test_a_tiff_of_any_depth_equals_its_source_pixels(
    dtype: str, channels: int | None, shifts: Path, tmp_path: Path, run_here: Run
) -> None:
    pixels, path = layer(dtype, channels), tmp_path / "layer.tif"
    photometric = "rgb" if channels == 3 else "minisblack"
    tifffile.imwrite(path, pixels, photometric=photometric, planarconfig="contig" if channels else None)
    done = run_here("apply-shifts", shifts, path, "-o", tmp_path / "out.tif")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"wrote {tmp_path / 'out.tif'}\n", "")
    filled = tifffile.imread(tmp_path / "out.tif")
    assert filled.dtype == pixels.dtype
    np.testing.assert_array_equal(filled, expected(shifts, pixels))
    np.testing.assert_array_equal(filled[~HOLE], pixels[~HOLE])


def test_several_layers_go_into_a_folder(shifts: Path, tmp_path: Path) -> None:
    normals, depth = save(tmp_path / "normals.png", photo()), layer("float16", 2)
    np.save(tmp_path / "depth.npy", depth)
    done = run("apply-shifts", shifts, normals, tmp_path / "depth.npy", "-o", tmp_path / "filled")
    assert (done.returncode, done.stderr) == (0, "")
    np.testing.assert_array_equal(load(tmp_path / "filled" / "normals.png"), expected(shifts, photo()))
    np.testing.assert_array_equal(np.load(tmp_path / "filled" / "depth.npy"), expected(shifts, depth))


def test_georeference_and_missing_values_of_a_tiff_are_kept(shifts: Path, tmp_path: Path, run_here: Run) -> None:
    pixels = layer("float32")
    pixels[3, 4] = np.nan
    tags = [(33550, "d", 3, (0.5, 0.5, 0.0), True), (42113, "s", 5, "-9999", True)]
    tifffile.imwrite(tmp_path / "height.tif", pixels, extratags=tags, metadata=None)
    assert run_here("apply-shifts", shifts, tmp_path / "height.tif", "-o", tmp_path / "out.tif").returncode == 0
    with tifffile.TiffFile(tmp_path / "out.tif") as file:
        page = file.pages.first
        assert page.tags[33550].value == (0.5, 0.5, 0.0)
        assert page.tags[42113].value == "-9999"
        np.testing.assert_array_equal(page.asarray(), expected(shifts, pixels))


def test_a_bad_layer_is_named_and_does_not_stop_the_others(shifts: Path, tmp_path: Path, run_here: Run) -> None:
    other, good = save(tmp_path / "other.png", photo(HEIGHT, WIDTH + 1)), save(tmp_path / "good.png", photo())
    (tmp_path / "cut.tif").write_bytes(b"II*\0\x08\0")
    (tmp_path / "letter.npy").write_text("Dear all")
    layers = other, tmp_path / "cut.tif", tmp_path / "letter.npy", good
    done = run_here("apply-shifts", shifts, *layers, "-o", tmp_path / "out")
    assert (done.returncode, files_in(tmp_path / "out")) == (1, {"good.png"})
    lines = done.stderr.splitlines()
    assert [any(str(path) in line for line in lines) for path in layers] == [True, True, True, False]
    assert len(lines) == 3
    assert f"image is {WIDTH + 1} × {HEIGHT} pixels and the shift map {WIDTH} × {HEIGHT}" in done.stderr


def test_wrong_usage_is_refused_before_anything_is_written(shifts: Path, tmp_path: Path, run_here: Run) -> None:
    one, two = save(tmp_path / "a" / "x.png", photo()), save(tmp_path / "b" / "x.png", photo())
    cases = [
        ((shifts, one, two, "-o", tmp_path / "out.png"), "there are 2 layers: give a folder"),
        ((shifts, one, two, "-o", tmp_path / "out"), f"{one} and {two} would both be written to"),
        ((shifts, one, "-o", one), "is an input and would be overwritten"),
        ((shifts, one, "-o", two), f"{two} exists: add --overwrite"),
        ((shifts, tmp_path / "nowhere.png", "-o", tmp_path / "out"), "nowhere.png: no such file"),
        ((shifts, one, "-o", tmp_path / "out.gif"), "cannot be written: let its name end in"),
    ]
    for arguments, words in cases:
        done = run_here("apply-shifts", *arguments)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert words in done.stderr
    assert files_in(tmp_path) == {"a", "b", "map.npz"}


def test_a_file_that_is_no_map_is_refused(tmp_path: Path, run_here: Run) -> None:
    picture = save(tmp_path / "map.png", photo())
    done = run_here("apply-shifts", picture, picture, "-o", tmp_path / "out.png")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert f"{picture} is damaged, or not a shift map" in done.stderr


def test_floats_are_not_written_to_a_format_without_them(shifts: Path, tmp_path: Path, run_here: Run) -> None:
    tifffile.imwrite(tmp_path / "depth.tif", layer("float32"))
    done = run_here("apply-shifts", shifts, tmp_path / "depth.tif", "-o", tmp_path / "out.png")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "out.png cannot hold float32" in done.stderr
