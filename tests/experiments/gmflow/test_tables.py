"""Tables of a record: means over pairs, and what is missing or computed."""

from pathlib import Path
from typing import Any

import pytest

from psal.experiments.gmflow.tables import Size, cost_name, quality_name, tables
from psal.measure.record import Cell, Record
from psal.measure.table import Table

SMALL, LARGE = (256, 448), (2176, 3840)
SETTINGS: dict[str, Any] = {
    "sizes": [list(SMALL), list(LARGE)],
    "distances": [1, 3], "sequences": {"1": ["bear", "swan"], "3": ["bear", "swan"]},
    "attentions": ["exact4", "psal4"], "cost_attentions": ["full-materialized", "psal4"],
}  # fmt: skip


def quality(change: float, psnr: float) -> Cell:
    """All rows change the flow by the same, but for PSAL, which changes it twice as much."""
    places = ("matching", "propagation", "both")
    rows = {f"exact4 {place}": {"change": change, "psnr": psnr} for place in places}
    rows |= {f"psal4 {place}": {"change": 2 * change, "psnr": psnr - 0.5} for place in places}
    return {"psnr": psnr + 1, "rows": rows}


def add_costs(record: Record, size: Size, attention: str, scale: float, **more: Any) -> None:
    time = {"seconds": 3 * scale, "attention_seconds": scale}
    memory = {"peak": 4e9 * scale, "attention_peak": 2e9 * scale}
    record.cells[cost_name(size, attention, "time")] = time | more
    record.cells[cost_name(size, attention, "memory")] = memory | more


@pytest.fixture
def record() -> Record:
    """Both pairs at a distance of 3, one at a distance of 1."""
    cells = {
        quality_name(SMALL, 3, "bear"): quality(0.1, 20.0),
        quality_name(SMALL, 3, "swan"): quality(0.3, 30.0),
        quality_name(SMALL, 1, "swan"): quality(0.05, 35.0),
    }
    return Record(Path("gmflow.json"), SETTINGS, {}, cells)


def by_title(found: list[Table]) -> dict[str, Table]:
    return {table.title.split(",")[0]: table for table in found}


def test_rows_are_means_over_the_pairs(record: Record) -> None:
    table = by_title(tables(record))["Mean change of the flow in pixels"]
    assert table.head[2] == "matching, 3 apart"
    assert [row[2] for row in table.rows] == ["0.200", "0.400"]


def test_missing_pairs_are_counted(record: Record) -> None:
    found = by_title(tables(record))
    assert found["Mean change of the flow in pixels"].head[1] == "matching, 1 apart (1 of 2 pairs)"
    bear, swan = found["By sequence"].rows
    assert bear == ["bear", "", "", "0.100 / 0.200", "21.0 / 20.0 / 19.5"]
    assert swan[1:3] == ["0.050 / 0.100", "36.0 / 35.0 / 34.5"]


def test_psnr_is_shown_against_full_attention(record: Record) -> None:
    table = by_title(tables(record))["PSNR of the warped frame in dB"]
    assert [row[2] for row in table.rows] == ["-1.00", "-1.50"]


def test_there_is_no_table_of_what_was_not_measured(record: Record) -> None:
    assert [table.title for table in tables(record) if table.title.startswith(("Seconds", "Peak", "In both"))] == []
    assert tables(Record(Path("gmflow.json"), SETTINGS, {}, {})) == []


def test_computed_costs_are_marked(record: Record) -> None:
    add_costs(record, SMALL, "psal4", 1)
    add_costs(record, SMALL, "full-materialized", 2)
    add_costs(record, LARGE, "full-materialized", 50, computed_from=list(SMALL))
    *_, seconds, memory = tables(record)
    assert seconds.head == ["attention", "256 × 448", "2176 × 3840 (4K)"]
    assert seconds.rows == [["Full attention, materialized", "2 (6)", "≈ 50 (150)"], ["PSAL 4", "1 (3)", ""]]
    assert memory.rows[0] == ["Full attention, materialized", "4 (8)", "≈ 100 (200)"]


def test_memory_is_shown_where_time_was_not_measured(record: Record) -> None:
    add_costs(record, SMALL, "psal4", 1)
    del record.cells[cost_name(SMALL, "psal4", "time")]
    *_, seconds, memory = tables(record)
    assert (seconds.rows[1], memory.rows[1]) == (["PSAL 4", "", ""], ["PSAL 4", "2 (4)", ""])


def test_sizes_are_compared_where_there_are_several(record: Record) -> None:
    record.cells[quality_name(LARGE, 3, "swan")] = quality(0.4, 28.0)
    [table] = [table for table in tables(record) if table.title == "In both places, 3 apart, by size"]
    assert table.rows == [
        ["256 × 448", "2", "0.200", "0.400", "26.00", "25.00", "24.50"],
        ["2176 × 3840 (4K)", "1", "0.400", "0.800", "29.00", "28.00", "27.50"],
    ]
