"""Tables of the experiment with GMFlow, from its record."""

import statistics
from collections.abc import Callable
from typing import Any, Literal

from psal.experiments.gmflow.attentions import label
from psal.measure.record import Cell, Record
from psal.measure.table import Table, number

Size = tuple[int, int]  # height and width, in pixels
Quantity = Literal["memory", "time"]

NAMED_SIZES = {(1088, 1920): "1080p", (2176, 3840): "4K"}
EXACT, PSAL = "exact4 both", "psal4 both"  # rows that are shown in more detail


def quality_name(size: Size, distance: int, sequence: str) -> str:
    """Name of the cell with the quality of all rows on one pair of frames."""
    return f"{size[0]}x{size[1]} {distance} {sequence}"


def cost_name(size: Size, attention: str, quantity: Quantity) -> str:
    """Name of the cell with the time or memory of a layer in both places."""
    return f"{size[0]}x{size[1]} {attention} {quantity}"


def costs_of(record: Record, attention: str, quantity: Quantity) -> dict[Size, Cell]:
    """The cells with the time or memory of a layer, by size, as far as there are any."""
    names = {size: cost_name(size, attention, quantity) for size in sizes_of(record)}
    return {size: record.cells[name] for size, name in names.items() if name in record.cells}


def has_costs(record: Record) -> bool:
    """Return whether time or memory was measured."""
    return any(costs_of(record, each, "memory") for each in record.settings["cost_attentions"])


def is_computed(cell: Cell) -> bool:
    """Return whether a cost was extrapolated, not measured."""
    return "computed_from" in cell


def shown_size(size: Size) -> str:
    """A size as text.

    >>> shown_size((256, 448)), shown_size((1088, 1920))
    ('256 × 448', '1088 × 1920 (1080p)')
    """
    named = NAMED_SIZES.get(size)
    return f"{size[0]} × {size[1]}" + (f" ({named})" if named else "")


def quality_cells(record: Record, size: Size, distance: int) -> dict[str, Cell]:
    """The measured cells of a size and distance, by sequence."""
    names = {each: quality_name(size, distance, each) for each in record.settings["sequences"][str(distance)]}
    return {each: record.cells[name] for each, name in names.items() if name in record.cells}


def sizes_of(record: Record) -> list[Size]:
    """The record's sizes, as tuples."""
    return [(height, width) for height, width in record.settings["sizes"]]


def tables(record: Record) -> list[Table]:
    """Change of the flow and error of the warped frame by layer, sequence and size, and cost; as far as measured."""
    size = sizes_of(record)[0]
    distances = [each for each in record.settings["distances"] if quality_cells(record, size, each)]
    found = []
    if distances:
        found += [
            _by_row("Mean change of the flow in pixels", record, distances, lambda row, _: row["change"], "{:.3f}"),
            _by_row("PSNR of the warped frame in dB, minus that of full attention", record, distances,
                    lambda row, full: row["psnr"] - full, "{:+.2f}"),
            _by_sequence(record, distances),
        ]  # fmt: skip
    by_size = _by_size(record)
    found += [by_size] if by_size.rows else []
    if has_costs(record):
        found += [
            _cost("Seconds: matching and propagation (whole network)", record, "time", "seconds", 1),
            _cost("Peak memory in GB: matching and propagation (whole network)", record, "memory", "peak", 1e9),
        ]
    return found


def _by_row(title: str, record: Record, distances: list[int], value: Callable[[Any, float], float], form: str) -> Table:
    """Means over the sequences: a row per layer, a column per place and distance."""
    size = sizes_of(record)[0]
    places = ("matching", "propagation", "both")
    rows = []
    for attention in record.settings["attentions"]:
        row = [label(attention)]
        for place in places:
            for distance in distances:
                cells = quality_cells(record, size, distance).values()
                values = [value(cell["rows"][f"{attention} {place}"], cell["psnr"]) for cell in cells]
                row.append(form.format(statistics.fmean(values)))
        rows.append(row)
    counts = {distance: _count(record, size, distance) for distance in distances}
    head = ["attention", *(f"{place}, {each} apart{counts[each]}" for place in places for each in distances)]
    return Table(f"{title}, at {shown_size(size)}", head, rows)


def _count(record: Record, size: Size, distance: int) -> str:
    """Say how many pairs were measured, if some are missing."""
    measured, all_pairs = quality_cells(record, size, distance), record.settings["sequences"][str(distance)]
    return f" ({len(measured)} of {len(all_pairs)} pairs)" if len(measured) < len(all_pairs) else ""


def _by_sequence(record: Record, distances: list[int]) -> Table:
    """Change of the flow in both places, and PSNR with full attention."""
    size = sizes_of(record)[0]
    rows = []
    for sequence in record.settings["sequences"][str(distances[0])]:
        row = [sequence]
        for distance in distances:
            cell = quality_cells(record, size, distance).get(sequence)
            if cell is None:
                row += ["", ""]
                continue
            exact, found = cell["rows"][EXACT], cell["rows"][PSAL]
            psnr = [f"{each['psnr']:.1f}" for each in (cell, exact, found)]
            row += [f"{exact['change']:.3f} / {found['change']:.3f}", " / ".join(psnr)]
        rows.append(row)
    head = ["sequence"]
    for distance in distances:
        head += [f"change, {distance} apart: exact top-4 / PSAL 4", f"PSNR, {distance} apart: full / exact / PSAL"]
    return Table(f"By sequence, in both places, at {shown_size(size)}", head, rows)


def _by_size(record: Record) -> Table:
    """Change and PSNR at the sizes that were compared, on the same pairs for all columns of a row."""
    rows = []
    for size in sizes_of(record):
        cells = list(quality_cells(record, size, 3).values())
        if not cells:
            continue
        changes = [f"{statistics.fmean(cell['rows'][row]['change'] for cell in cells):.3f}" for row in (EXACT, PSAL)]
        psnr = statistics.fmean(cell["psnr"] for cell in cells)
        psnrs = [f"{statistics.fmean(cell['rows'][row]['psnr'] for cell in cells):.2f}" for row in (EXACT, PSAL)]
        rows.append([shown_size(size), str(len(cells)), *changes, f"{psnr:.2f}", *psnrs])
    head = ["size", "pairs", "change, exact top-4", "PSAL 4", "PSNR, full attention", "exact top-4", "PSAL 4"]
    return Table("In both places, 3 apart, by size", head, rows if len(rows) > 1 else [])


def _cost(title: str, record: Record, quantity: Quantity, key: str, unit: float) -> Table:
    """A row per layer, a column per size."""

    def shown(cell: Cell | None) -> str:
        if cell is None:
            return ""
        network = number(cell[key] / unit) if key in cell else "–"
        text = f"{number(cell[f'attention_{key}'] / unit)} ({network})"
        return f"≈ {text}" if is_computed(cell) else text

    sizes = sizes_of(record)
    rows = []
    for attention in record.settings["cost_attentions"]:
        cells = costs_of(record, attention, quantity)
        rows.append([label(attention), *(shown(cells.get(size)) for size in sizes)])
    return Table(title, ["attention", *map(shown_size, sizes)], rows)
