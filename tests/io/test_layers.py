"""Layers of a scene: what is no layer is refused by name, and a layer's file can be written again."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile

from psal.io.layers import open_layer


def values(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("suffix", [".npy", ".tif"])
@pytest.mark.parametrize("shape", [(7, 9), (7, 9, 1), (7, 9, 2), (7, 9, 5)])
def test_a_layer_is_written_like_it_was_read(shape: tuple[int, ...], suffix: str, tmp_path: Path) -> None:
    path, out, pixels = tmp_path / f"layer{suffix}", tmp_path / f"out{suffix}", values(*shape)
    if suffix == ".npy":
        np.save(path, pixels)
    elif shape[2:] == (1,):
        pytest.skip("a TIFF has no axis of one channel")
    else:
        tifffile.imwrite(path, pixels, photometric="minisblack", planarconfig="contig" if len(shape) == 3 else None)
    layer = open_layer(path)
    np.testing.assert_array_equal(layer.pixels, pixels)
    layer.save(out, -layer.pixels)
    np.testing.assert_array_equal(open_layer(out).pixels, -layer.pixels)
    assert suffix in layer.suffixes


def test_a_tiff_of_planes_becomes_channels_last(tmp_path: Path) -> None:
    pixels = values(7, 9, 3)
    tifffile.imwrite(tmp_path / "x.tif", np.moveaxis(pixels, -1, 0), photometric="rgb", planarconfig="separate")
    np.testing.assert_array_equal(open_layer(tmp_path / "x.tif").pixels, pixels)


@pytest.mark.parametrize("shape", [(), (7,), (2, 3, 4, 5)], ids=str)
def test_an_array_of_other_dimensions_is_refused(shape: tuple[int, ...], tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", values(*shape))
    with pytest.raises(ValueError, match=r"x\.npy must be an array \(H, W\) or \(H, W, C\), got shape \("):
        open_layer(tmp_path / "x.npy")


def test_several_arrays_in_one_file_are_refused(tmp_path: Path) -> None:
    with (tmp_path / "x.npy").open("wb") as file:
        np.savez(file, values(7, 9))
    with pytest.raises(ValueError, match=r"x\.npy must be an array"):
        open_layer(tmp_path / "x.npy")


def test_a_tiff_of_several_pages_is_refused(tmp_path: Path) -> None:
    tifffile.imwrite(tmp_path / "pages.tif", values(2, 7, 9), photometric="minisblack")
    with pytest.raises(ValueError, match=r"pages\.tif has 2 pages: save the one you want as a file of its own"):
        open_layer(tmp_path / "pages.tif")
