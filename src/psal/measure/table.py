"""Tables as data, for the terminal and the documentation."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from psal.measure.record import Record


@dataclass(frozen=True)
class Table:
    """A table of text cells.

    Attributes:
        title: one line above the table; may be empty.
        head: column titles.
        rows: cells, as many per row as the head has.
    """

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]


def number(value: float) -> str:
    """Three significant digits with thousands separators; four near 1, so that 1.027 does not become 1.03.

    >>> number(1234567.0), number(0.0123456), number(1.0271)
    ('1,234,567', '0.0123', '1.027')
    """
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.4g}" if 0.9 <= abs(value) < 2 else f"{value:.3g}"


def origins(record: Record) -> list[str]:
    """When, by which command and on which machine a record was measured: one sentence per machine and command."""
    cells: dict[str, list[str]] = {}
    for name, cell in record.cells.items():
        cells.setdefault(_origin(cell.get("metadata", record.metadata)), []).append(str(cell.get("label", name)))
    if len(cells) < 2:
        return list(cells) or [_origin(record.metadata)]
    main = max(cells, key=lambda line: len(cells[line]))
    others = [f"{', '.join(dict.fromkeys(names))}: m{line[1:]}" for line, names in cells.items() if line != main]
    return [main, *others]


def _origin(metadata: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {found}" for name, found in metadata["versions"].items() if found)
    machine = f"{metadata['cpu']} ({metadata['cores']} cores, {metadata['cpu_capability']}), {metadata['system']}"
    return (
        f"Measured on {metadata['date'][:10]} by `{metadata['command']}` on {machine}, "
        f"Python {metadata['python']}, {versions}."
    )


def quantity_tables(record: Record) -> list[Table]:
    """One table of all quantities of a benchmark; see :class:`psal.measure.quantities.Quantities`."""
    cells = [cell for cell in record.cells.values() if "rows" in cell]
    labeled = any("label" in cell for cell in cells)
    rows = []
    for cell in cells:
        for index, row in enumerate(cell["rows"]):
            low, high = map(number, row["spread"])
            value = f"{number(row['value'])} {row['unit']}".strip()
            spread = f"{low} to {high}" if low != high else ""
            case = [] if not labeled else [cell.get("label", "")] if index == 0 else [""]
            rows.append([*case, row["quantity"], row["against"], value, spread])
    return [Table("", [*(["case"] if labeled else []), "quantity", "compared with", "value", "spread"], rows)]


def timing_tables(record: Record) -> list[Table]:
    """The times behind a benchmark's ratios.

    Each is the median over samples of their medians, with the extreme quartiles.
    """
    rows = []
    for cell in record.cells.values():
        for group, samples in cell.get("timings", {}).items():
            for case in next(iter(samples.values())):
                timings = [sample[case] for sample in samples.values()]
                middle = median(timing["median"] for timing in timings)
                low = min(timing["quartiles"][0] for timing in timings)
                high = max(timing["quartiles"][1] for timing in timings)
                rows.append([group, case, number(1e3 * middle), f"{number(1e3 * low)} to {number(1e3 * high)}"])
    return [Table("", ["group", "case", "milliseconds", "quartiles"], rows)]
