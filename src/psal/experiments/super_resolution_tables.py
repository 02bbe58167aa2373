"""Table 7, from its record: one table per scale."""

import statistics
from collections.abc import Sequence
from typing import Any, NamedTuple

from psal.experiments import paper
from psal.measure.record import Cell, Record
from psal.measure.table import Table, number
from psal.models.csnln.attentions import label

ATTENTIONS = ("exact", "psal1", "psal3", "psal7", "random3", "random7", "local7", "none")  # the usual rows
WITHOUT_NETWORK = {"bicubic": "bicubic", "patches": "psal.upscale"}  # title by name


class Row(NamedTuple):
    """A network of one scale: the cross-scale attention that it was trained with, and the one it is tested with."""

    scale: int
    trained: str
    tested: str


def rows_of(networks: Sequence[tuple[int, str]], attentions: Sequence[str]) -> list[Row]:
    """Rows of all networks, given as scale and attention in training, and of what needs no network.

    The first network of a scale is tested with all attentions, each other one with that of its training.

    >>> [tuple(row) for row in rows_of([(2, "psal3"), (2, "none")], ["exact", "psal3"])]
    [(2, '', 'bicubic'), (2, '', 'patches'), (2, 'psal3', 'exact'), (2, 'psal3', 'psal3'), (2, 'none', 'none')]
    """
    rows = []
    for scale in sorted({scale for scale, _ in networks}):
        rows += [Row(scale, "", name) for name in WITHOUT_NETWORK]
        first, *others = (trained for each, trained in networks if each == scale)
        rows += [Row(scale, first, tested) for tested in attentions]
        rows += [Row(scale, trained, trained) for trained in others]
    return rows


def title(row: Row) -> str:
    """A row as text.

    >>> title(Row(2, "exact", "psal3")), title(Row(2, "psal3", "psal3"))
    ('PSAL 3', 'PSAL 3, trained so')
    """
    if row.tested in WITHOUT_NETWORK:
        return WITHOUT_NETWORK[row.tested]
    return label(row.tested) + (", trained so" if row.trained == row.tested != "exact" else "")


def quality_name(row: Row, region: str, picture: str) -> str:
    """Name of the cell with the quality of one picture."""
    return f"x{row.scale} {row.trained} {row.tested} {region} {picture}"


def cost_name(row: Row, region: str) -> str:
    """Name of the cell with time and memory."""
    return f"x{row.scale} {row.trained} {row.tested} {region} cost"


def measured_rows(record: Record) -> list[Row]:
    """Rows with at least one measurement: the usual attentions first, then others that were asked for."""
    cells = [name.split(" ")[:3] for name in record.cells]  # scale, training, test
    tested = dict.fromkeys([*ATTENTIONS, *(name for *_, name in cells if name not in WITHOUT_NETWORK)])
    networks = [(each["scale"], each["trained"]) for each in record.settings["networks"]]
    return [row for row in rows_of(networks, list(tested)) if [f"x{row.scale}", row.trained, row.tested] in cells]


def tables(record: Record) -> list[Table]:
    """Quality and cost by scale; rows that have not been measured are left out."""
    rows = measured_rows(record)
    found = []
    for scale in sorted({row.scale for row in rows}):
        for region in ("crop", "whole"):
            table = _table(record, [row for row in rows if row.scale == scale], scale, region)
            found += [table] if table.rows else []
    return found


def _table(record: Record, rows: list[Row], scale: int, region: str) -> Table:
    measured = [row for row in rows if _qualities(record, row, region) or cost_name(row, region) in record.cells]
    compared = next((row for row in rows if row.tested == "exact"), None)
    exact = _qualities(record, compared, region) if compared else {}
    body = []
    for row in measured:
        cells = _qualities(record, row, region)
        cost = record.cells.get(cost_name(row, region), {})
        known = paper.SUPER_RESOLUTION_PSNR.get(row.tested) if row.trained == "exact" else None
        body.append(
            [
                title(row),
                _mean(cells, "psnr", "{:.3f}"),
                _difference(cells, exact),
                _mean(cells, "ssim", "{:.4f}"),
                *(_cost(cost, key, unit) for key, unit in (("seconds", 1.0), ("peak", 1e9))),
                f"{known[scale]:.3f}" if known and scale in known else "",
            ]
        )
    pictures = len(record.settings["pictures"])
    what = "crops of {0} × {0} pixels".format(record.settings["crop"]) if region == "crop" else "whole pictures"
    counted = {len(_qualities(record, row, region)) for row in measured} - {0}
    so_far = f" (measured so far: {min(counted)} to {pictures})" if counted and min(counted) < pictures else ""
    head = [
        "cross-scale attention", "PSNR in dB", "minus that of exact attention (range)", "SSIM",
        "seconds, network (branch)", "GB, network (branch)", "PSNR in the paper, all of Urban100",
    ]  # fmt: skip
    return Table(f"× {scale}, {what}, {pictures} pictures{so_far}", head, body)


def _qualities(record: Record, row: Row, region: str) -> dict[str, Cell]:
    """Measured cells by picture."""
    names = {picture: quality_name(row, region, picture) for picture in record.settings["pictures"]}
    return {picture: record.cells[name] for picture, name in names.items() if name in record.cells}


def _mean(cells: dict[str, Cell], key: str, form: str) -> str:
    return form.format(statistics.fmean(cell[key] for cell in cells.values())) if cells else ""


def _difference(cells: dict[str, Cell], exact: dict[str, Cell]) -> str:
    found = [cell["psnr"] - exact[picture]["psnr"] for picture, cell in cells.items() if picture in exact]
    if not found:
        return ""
    return f"{statistics.fmean(found):+.3f} ({min(found):+.3f} to {max(found):+.3f})"


def _cost(cost: dict[str, Any], key: str, unit: float) -> str:
    if not cost:
        return ""
    branch = f" ({number(cost[f'branch_{key}'] / unit)})" if f"branch_{key}" in cost else ""
    return f"{number(cost[key] / unit)}{branch}"
