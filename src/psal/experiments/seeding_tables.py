"""The table of results/seeding.json: how close searches come to the exact matches, by what they start from."""

from statistics import fmean

from psal.measure.record import Record
from psal.measure.table import Table, number


def tables(record: Record) -> list[Table]:
    """Cost of each search's best matches over that of the exact ones, by sequence, and the mean over all of them."""
    if not record.cells:
        return []
    costs = {sequence: cell["costs"] for sequence, cell in record.cells.items()}
    searches = list(next(iter(costs.values())))
    rows = [[sequence, *(number(found[name]) for name in searches)] for sequence, found in costs.items()]
    rows.append(["mean", *(number(fmean(found[name] for found in costs.values())) for name in searches)])
    return [Table("", ["sequence", *searches], rows)]
