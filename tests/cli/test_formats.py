"""Files of newer formats, as processes and in folders."""

import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from support.commands import HEIGHT, WIDTH, Run, files_in, photo, run, save

from psal.io.photo import Photo


def test_a_folder_of_mixed_formats_keeps_each_format(tmp_path: Path) -> None:
    photos, out = tmp_path / "photos", tmp_path / "out"
    photos.mkdir()
    for name in ("a.avif", "b.jp2", "c.tif", "d.webp"):
        Photo(photo()).save(photos / name)
    Image.fromarray(photo()).save(photos / "e.gif")
    done = run("upscale", photos, "-o", out, "--scale", 1.5)
    assert (done.returncode, done.stderr) == (0, "")
    assert files_in(out) == {"a.avif", "b.jp2", "c.tif", "d.webp", "e.png"}
    for path in out.iterdir():
        assert Photo.open(path).pixels.shape[:2] == (round(1.5 * HEIGHT), round(1.5 * WIDTH))


def test_a_depth_that_avif_loses_is_said(tmp_path: Path, run_here: Run) -> None:
    Photo(photo().astype(np.uint16) * 257).save(tmp_path / "deep.jp2")
    out = tmp_path / "out.avif"
    done = run_here("upscale", tmp_path / "deep.jp2", "-o", out)
    assert done.stdout == f"wrote {out} (8 bits per channel: AVIF has no 16)\n"


def test_heic_goes_in_and_out(tmp_path: Path, run_here: Run) -> None:
    pytest.importorskip("pillow_heif")
    Photo(photo()).save(tmp_path / "photo.heic")
    done = run_here("upscale", tmp_path / "photo.heic", "-o", tmp_path / "out.heic")
    assert (done.returncode, done.stderr) == (0, "")
    assert Photo.open(tmp_path / "out.heic").format == "HEIF"


def test_heic_without_the_plug_in_names_it(tmp_path: Path, run_here: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pillow_heif", None)
    path = save(tmp_path / "photo.png", photo())
    done = run_here("upscale", path, "-o", tmp_path / "out.heic")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "pip install 'psal[heic]'" in done.stderr
