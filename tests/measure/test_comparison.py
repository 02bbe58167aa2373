"""Tables that compare several ways of doing one thing."""

from pathlib import Path
from typing import Any

from psal.measure.comparison import Column, benchmark_tables, comparison_tables, row_of
from psal.measure.quantities import Quantities
from psal.measure.record import Record


def record_of(**cells: Any) -> Record:
    return Record(Path("bench.json"), {}, {}, cells)


def columns(quality: list[float], seconds: list[float], memory: float) -> list[Column]:
    return [
        Column("error", quality, compared="difference"),
        Column("time", seconds, summary="median", compared="ratio"),
        Column("memory", [memory], compared="ratio"),
    ]


def test_rows_are_compared_with_the_first_on_the_samples_that_both_have() -> None:
    ours = row_of("Fill", "ours", ["a", "b", "c"], columns([0.1, 0.2, 0.3], [1.0, 2.0, 9.0], 50))
    theirs = row_of("Fill", "theirs", ["c", "b"], columns([0.5, 0.1, ], [18.0, 8.0], 100))  # fmt: skip
    [table] = comparison_tables(record_of(x=ours, y=theirs))
    assert table.title == "Fill"
    assert table.head == [
        "", "samples", "error", "− that of ours", "time", "÷ that of ours", "memory", "÷ that of ours",
    ]  # fmt: skip
    assert table.rows == [
        ["ours", "3", "0.2", "", "2", "", "50", ""],
        ["theirs", "2", "0.3", "+0.05 (lower in 1 of 2)", "13", "3 ×", "100", "2 ×"],
    ]


def test_a_row_without_common_samples_is_not_compared() -> None:
    ours, theirs = (row_of("Fill", name, [name, "x" + name], [Column("t", [1, 3], "mean", "ratio")]) for name in "ab")
    [table] = comparison_tables(record_of(a=ours, b=theirs))
    assert table.rows[1] == ["b", "2", "2", ""]


def test_each_title_is_a_table_and_quantities_follow() -> None:
    cells = {name: row_of(f"On {name}", "ours", ["a"], [Column("t", [1.5])]) for name in ("x", "y")}
    quantities = Quantities("upscale")
    quantities.add("PSNR", [26.0], unit="dB")
    first, second, last = benchmark_tables(record_of(**cells, z=quantities.cell()))
    assert (first.title, second.title) == ("On x", "On y")
    assert last.rows == [["upscale", "PSNR", "", "26 dB", ""]]


def test_a_record_of_comparisons_alone_has_no_table_of_quantities() -> None:
    assert len(benchmark_tables(record_of(x=row_of("Fill", "ours", ["a"], [Column("t", [1.0])])))) == 1
