from pathlib import Path

import numpy as np
import pytest
from support.commands import HEIGHT, WIDTH, Run, load, photo, save


@pytest.mark.parametrize(
    ("options", "sides"),  # left, right, top, bottom
    [
        ((), (9, 9, 7, 7)),
        (("--extend", "20%"), (7, 7, 5, 5)),
        (("--extend", "4", "--top", "0"), (4, 4, 0, 4)),
        (("--left", "10%", "--bottom", "3px"), (4, 0, 0, 3)),
    ],
)
def test_a_photo_is_extended_by_pixels_or_percent(
    options: tuple[str, ...], sides: tuple[int, int, int, int], tmp_path: Path, run_here: Run
) -> None:
    path, out = save(tmp_path / "photo.png", photo()), tmp_path / "out.png"
    done = run_here("outpaint", path, "-o", out, *options)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"wrote {out}\n", "")
    left, right, top, bottom = sides
    wider = load(out)
    assert wider.shape == (HEIGHT + top + bottom, WIDTH + left + right, 3)
    np.testing.assert_array_equal(wider[top : top + HEIGHT, left : left + WIDTH], photo())


@pytest.mark.parametrize("length", ["big", "-5", "2.5", "25%%"])
def test_what_is_no_length_is_refused(length: str, tmp_path: Path, run_here: Run) -> None:
    path = save(tmp_path / "photo.png", photo())
    done = run_here("outpaint", path, "-o", tmp_path / "out.png", f"--left={length}")
    assert (done.returncode, done.stdout) == (2, "")
    assert "Invalid value for '--left'" in done.stderr
