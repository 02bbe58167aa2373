"""Tables that compare several ways of doing one thing: a row for each, on the same samples.

The first row of a table is the baseline. Where it measured the same samples, the others are compared with it.
"""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from psal.measure.record import Cell, Record
from psal.measure.table import Table, number, quantity_tables

SUMMARIES: dict[str, Callable[[Sequence[float]], float]] = {"mean": statistics.fmean, "median": statistics.median}


@dataclass(frozen=True)
class Column:
    """What was measured, by sample.

    Attributes:
        title: with the unit.
        values: one for each sample, or a single one of all.
        summary: "mean" or "median", for the table.
        compared: "ratio" or "difference" to the baseline's value of the same sample; empty for neither.
    """

    title: str
    values: Sequence[float]
    summary: str = "mean"
    compared: str = ""


def row_of(table: str, title: str, samples: Sequence[str], columns: Sequence[Column], **details: Any) -> Cell:
    """A row as the cell of a record.

    Args:
        table: title of its table; rows with the same title form one.
        title: of the row.
        samples: names of what was measured.
        columns: its measurements; the same ones in all rows of a table.
        details: further measurements, as JSON can hold them.
    """
    return {
        "comparison": table,
        "label": title,
        "samples": list(samples),
        "columns": [asdict(column) for column in columns],
    } | details


def comparison_tables(record: Record) -> list[Table]:
    """The tables of all such cells of a record."""
    found: dict[str, list[Cell]] = {}
    for cell in record.cells.values():
        if "comparison" in cell:
            found.setdefault(cell["comparison"], []).append(cell)
    return [_table(title, cells) for title, cells in found.items()]


def benchmark_tables(record: Record) -> list[Table]:
    """All tables of a benchmark: comparisons, then quantities."""
    return comparison_tables(record) + [table for table in quantity_tables(record) if table.rows]


def _table(title: str, cells: list[Cell]) -> Table:
    baseline = cells[0]
    head = ["", "samples"]
    for column in baseline["columns"]:
        head.append(column["title"])
        if column["compared"]:
            sign = "÷" if column["compared"] == "ratio" else "−"
            head.append(f"{sign} that of {baseline['label']}")
    rows = []
    for cell in cells:
        row = [cell["label"], str(len(cell["samples"]))]
        for column, reference in zip(cell["columns"], baseline["columns"], strict=True):
            values = column["values"]  # none if a method refused all samples
            row.append(number(SUMMARIES[column["summary"]](values)) if values else "")
            if column["compared"]:
                row.append("" if cell is baseline else _compared(column, _paired(cell, column, baseline, reference)))
        rows.append(row)
    return Table(title, head, rows)


def _paired(cell: Cell, column: dict[str, Any], baseline: Cell, reference: dict[str, Any]) -> list[tuple[float, float]]:
    """Values of the samples that both have, or the single values."""
    if len(column["values"]) != len(cell["samples"]) or len(reference["values"]) != len(baseline["samples"]):
        return list(zip(column["values"], reference["values"], strict=True))
    known = dict(zip(baseline["samples"], reference["values"], strict=True))
    values = zip(cell["samples"], column["values"], strict=True)
    return [(value, known[sample]) for sample, value in values if sample in known]


def _compared(column: dict[str, Any], pairs: list[tuple[float, float]]) -> str:
    if not pairs:
        return ""
    if column["compared"] == "ratio":
        return f"{number(SUMMARIES[column['summary']]([a / b for a, b in pairs]))} ×"
    differences = [a - b for a, b in pairs]
    lower = sum(difference < 0 for difference in differences)
    difference = SUMMARIES[column["summary"]](differences)
    return f"{'+' if difference > 0 else ''}{number(difference)} (lower in {lower} of {len(pairs)})"
