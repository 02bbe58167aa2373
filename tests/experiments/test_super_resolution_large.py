"""``psal bench super-resolution-large`` on a tiny picture."""

import json
from pathlib import Path

import pytest
from support.commands import Run


@pytest.mark.slow
def test_memory_is_measured_by_scale_and_width(run_here: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"SCALES": (2, 4), "WIDTHS": (4, 32), "SIZE": (192, 160)}.items():
        monkeypatch.setattr(f"psal.experiments.super_resolution_large.{name}", value)
    monkeypatch.setenv("COLUMNS", "200")
    done = run_here("bench", "super-resolution-large", "--threads", 1, "--out", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    cells = json.loads((tmp_path / "super_resolution_large.json").read_text())["cells"]
    assert set(cells) == {"x2 4", "x4 4", "x2 32", "x4 32"}
    assert cells["x4 32"]["peak"] > cells["x2 32"]["peak"] > 4 * 32 * 192 * 160
    pixels = 192 * 160
    assert cells["x2 4"]["exact_pairs"] == pixels * pixels // 4
    assert "640 × 768" in done.stdout
