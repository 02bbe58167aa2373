"""Records as tables."""

from pathlib import Path
from typing import Any

import pytest

from psal.measure.quantities import Quantities
from psal.measure.record import Record
from psal.measure.table import Table, origins, quantity_tables, timing_tables
from psal.measure.terminal import show, track
from psal.measure.timing import Ratio, Timing

METADATA: dict[str, Any] = {
    "date": "2026-01-02T03:04:05+00:00", "command": "psal bench", "cpu": "CPU", "cores": 2, "cpu_capability": "AVX2",
    "system": "Linux", "python": "3.11", "versions": {"psal": "1", "faiss": None},
}  # fmt: skip


def record_of(**cells: Any) -> Record:
    return Record(Path("bench.json"), {}, METADATA, cells)


def test_quantities_have_a_value_and_a_spread() -> None:
    found = Quantities()
    found.add("time", [1.0, 2.0, 6.0], unit="s")
    found.add_ratios("speedup", [Ratio(2, 1, 3), Ratio(4, 2, 5), Ratio(6, 5, 7)], against="exact search", unit="×")
    [table] = quantity_tables(record_of(a=found.cell()))
    assert table.head == ["quantity", "compared with", "value", "spread"]
    assert table.rows == [["time", "", "3 s", "1 to 6"], ["speedup", "exact search", "4 ×", "1 to 7"]]


def test_cases_are_named_once() -> None:
    found = Quantities("upscale")
    found.add("PSNR", [26.0], unit="dB")
    found.add("time", [1.5], unit="s")
    [table] = quantity_tables(record_of(a=found.cell()))
    assert [row[0] for row in table.rows] == ["upscale", ""]
    assert [row[4] for row in table.rows] == ["", ""]


def test_times_are_medians_over_samples() -> None:
    found = Quantities()
    for sample, seconds in {"x": [0.1, 0.2, 0.3], "y": [0.4, 0.4, 0.4]}.items():
        found.keep_times("search", sample, {"default": Timing(seconds)})
    [table] = timing_tables(record_of(a=found.cell()))
    assert table.rows == [["search", "default", "300", "150 to 400"]]


def test_the_origin_names_date_command_machine_and_versions() -> None:
    assert origins(record_of(a={})) == [
        "Measured on 2026-01-02 by `psal bench` on CPU (2 cores, AVX2), Linux, Python 3.11, psal 1."
    ]


def test_cells_from_another_machine_are_named() -> None:
    other = {"label": "upscale", "metadata": METADATA | {"cpu": "another"}}
    main, second = origins(record_of(a={}, b={}, c={}, d=other, e=other))
    assert main.startswith("Measured")
    assert second.startswith("upscale: measured on 2026-01-02 by `psal bench` on another")


def test_tables_are_printed_whole_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    show(record_of(), [Table("A [title]", ["head"], [["[cell] " + "x" * 200]])])
    printed = capsys.readouterr().out
    assert "A [title]" in printed
    assert "[cell] " + "x" * 200 in printed


def test_tracked_items_pass_through_silently_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(track([1, 2], "counting")) == [1, 2]
    assert capsys.readouterr() == ("", "")
