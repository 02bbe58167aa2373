"""Records keep what has been measured, whatever happens afterwards."""

from pathlib import Path

import pytest

from psal.errors import UsageError
from psal.measure.record import Cell, Record

FIRST = {"command": "first", "cpu": "A", "date": "monday", "load": 0.1, "commit": "1"}


def interrupted() -> Cell:
    raise KeyboardInterrupt


def test_an_interrupted_run_is_resumed(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "table.json"
    record = Record.resume(path, {"sizes": (1, 2)}, FIRST)
    record.measure_once("one", lambda: {"value": 1})
    with pytest.raises(KeyboardInterrupt):
        record.measure_once("two", interrupted)

    resumed = Record.resume(path, {"sizes": (1, 2)}, FIRST | {"date": "tuesday"})
    assert resumed.measure_once("one", interrupted)["value"] == 1
    assert "two" not in resumed.cells
    assert resumed.measure_once("two", lambda: {"value": 2})["value"] == 2
    assert resumed.metadata == FIRST


def test_a_cell_from_another_machine_has_its_own_metadata(tmp_path: Path) -> None:
    path = tmp_path / "table.json"
    Record.resume(path, {}, FIRST).measure_once("one", lambda: {"value": 1})
    same = Record.resume(path, {}, FIRST | {"date": "tuesday", "load": 2.0, "commit": "2"})
    assert same.measure_once("two", lambda: {"value": 2}).keys() == {"value", "date", "commit"}
    assert same.cells["two"]["commit"] == "2"
    other = FIRST | {"cpu": "B"}
    assert Record.resume(path, {}, other).measure_once("three", lambda: {"value": 3})["metadata"] == other
    assert "metadata" not in Record.read(path).cells["one"]


def test_other_settings_are_refused_unless_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "table.json"
    Record.resume(path, {"size": 1, "pairs": 3}, {}).measure_once("one", lambda: {"value": 1})
    with pytest.raises(UsageError, match=r"other settings \(size\)"):
        Record.resume(path, {"size": 2, "pairs": 3}, {})
    assert Record.resume(path, {"size": 2, "pairs": 3}, {}, overwrite=True).cells == {}


@pytest.mark.parametrize("content", ['{"cells": {}}', '{"metadata": {}, "settings": [], "cells": {}}', "[]"])
def test_a_file_of_another_kind_is_not_read(content: str, tmp_path: Path) -> None:
    path = tmp_path / "table.json"
    path.write_text(content)
    with pytest.raises(ValueError, match="is not a results file"):
        Record.read(path)
