"""The table of results/mutants.json: how many deliberate faults the tests notice, by the part of the project."""

from psal.measure.record import Record
from psal.measure.table import Table

HEAD = ("part", "changed places", "noticed", "with the tests added since")


def tables(record: Record) -> list[Table]:
    """Mutants of each part that compile, and how many a test noticed at first and when tested again."""
    rows = []
    for part in dict.fromkeys(cell["label"] for cell in record.cells.values()):
        cells = [
            cell for cell in record.cells.values() if cell["label"] == part and cell["noticed_by"] != "the compiler"
        ]
        later = sum(cell["noticed_by"] is not None for cell in cells)
        first = sum(cell["noticed_by"] is not None and not cell.get("again") for cell in cells)
        rows.append([part, f"{len(cells)}", _of(first, len(cells)), _of(later, len(cells)) if later > first else ""])
    return [Table("", HEAD, rows)]


def _of(count: int, total: int) -> str:
    return f"{count} ({count / total:.0%})"
