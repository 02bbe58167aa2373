"""Each benchmark runs with --quick, and writes to build/ instead of results/."""

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from PIL import Image
from support.frames import write_davis

from benchmarks import editing, hard_cases, layer, seeding
from psal.measure.record import Record

FOREIGN = {"faiss": "faiss", "inpaint_speed": "patchmatch", "inpaint_quality": "patchmatch"}  # package by group


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data folder with small pictures."""
    folder = tmp_path / "data"
    write_davis(folder / "DAVIS", {"bear": ("train", 12), "swan": ("val", 12)}, width=64, height=48)
    generator = np.random.default_rng(0)
    for name in ("highres/images/hifill_1.jpg", "scenes/places512_object/images/1.png", "Urban100/HR/1.png"):
        path = folder / name
        path.parent.mkdir(parents=True)
        pixels = generator.integers(0, 256, (24, 32, 3), np.uint8)
        Image.fromarray(pixels).resize((128, 96)).save(path)
    mask = np.zeros((96, 128), np.uint8)
    mask[40:52, 50:66] = 255
    (folder / "highres/masks").mkdir()
    Image.fromarray(mask).save(folder / "highres/masks/hifill_1.png")
    return folder


def groups_that_can_run(module: ModuleType) -> list[str]:
    """All but those that compare with a package that is not installed."""
    return [name for name in module.BENCHMARK.groups if name not in FOREIGN or importlib.util.find_spec(FOREIGN[name])]


@pytest.mark.slow
@pytest.mark.parametrize("module", [layer, editing, hard_cases])
def test_a_quick_run_measures_every_group(
    module: ModuleType,
    data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    restored_threads: None,
) -> None:
    name, groups = module.BENCHMARK.name, groups_that_can_run(module)
    monkeypatch.setenv("PYTHONPATH", ":".join([str(Path(__file__).parents[2]), *sys.path]))  # for fresh processes
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [name, "--data", str(data), "--quick", "--threads", "1", "--rows", *groups])
    module.main()
    assert not (tmp_path / "results").exists()
    record = Record.read(tmp_path / "build" / f"{name}.json")
    assert list(record.cells) == groups
    assert all(cell["rows"] for cell in record.cells.values())
    assert str(tmp_path) not in json.dumps(record.metadata)
    assert record.cells[groups[0]]["rows"][0]["quantity"] in capsys.readouterr().out


def test_missing_data_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, restored_threads: None) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["layer", "--data", str(tmp_path), "--quick"])
    with pytest.raises(SystemExit, match=r"^error: .*val\.txt"):
        layer.main()


@pytest.mark.slow
def test_a_quick_run_measures_the_seeding_of_every_sequence(
    data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    restored_threads: None,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["seeding", "--data", str(data), "--quick", "--threads", "1"])
    seeding.main()
    record = Record.read(tmp_path / "build" / "seeding.json")
    assert set(record.cells) == {"bear", "swan"}
    for cell in record.cells.values():
        assert cell["costs"].keys() == seeding.SEARCHES.keys()
        assert all(1 <= cost < 2 for cost in cell["costs"].values())
    assert "mean" in capsys.readouterr().out
