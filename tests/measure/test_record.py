"""What has been measured stays, whatever happens to the rest."""

from pathlib import Path

import pytest

from psal.errors import UsageError
from psal.measure.record import Cell, Record


def interrupted() -> Cell:
    raise KeyboardInterrupt


def test_a_stopped_run_goes_on_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "table.json"
    record = Record(path, {"sizes": (1, 2)}, {"command": "first"})
    record.keep("one", lambda: {"value": 1})
    with pytest.raises(KeyboardInterrupt):
        record.keep("two", interrupted)

    again = Record(path, {"sizes": (1, 2)}, {"command": "second"})
    assert again.keep("one", interrupted)["value"] == 1
    assert "two" not in again
    assert again.keep("two", lambda: {"value": 2})["value"] == 2
    assert again.metadata == {"command": "first"}


def test_other_settings_are_refused_unless_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "table.json"
    Record(path, {"size": 1, "pairs": 3}, {}).keep("one", lambda: {"value": 1})
    with pytest.raises(UsageError, match=r"other settings \(size\)"):
        Record(path, {"size": 2, "pairs": 3}, {})
    assert Record(path, {"size": 2, "pairs": 3}, {}, overwrite=True).cells == {}
