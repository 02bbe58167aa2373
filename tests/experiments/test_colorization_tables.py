"""Tables of the colorization networks, from a results file."""

import json
from pathlib import Path
from typing import Any

from psal.experiments.tables import tables_of
from psal.measure.record import Record

COST = {"gigaflops": 1.0, "peak": 1e9, "seconds": 1.0}


def cell(val: float, holdout: float) -> dict[str, Any]:
    return {"val": {"loss": val}, "holdout": {"loss": holdout}}


def rows_of(folder: Path, table: str, cells: dict[str, Any]) -> list[dict[str, str]]:
    path = folder / f"colorization_{table}.json"
    costs = {f"{name} cost": COST for name in ("psal1", "psal3")}
    content = {"metadata": {}, "settings": {"table": table}, "cells": {"gray": cell(0.003, 0.006)} | costs | cells}
    path.write_text(json.dumps(content))
    [found] = tables_of(Record.read(path))
    return [dict(zip(found.head, row, strict=True)) for row in found.rows]


def test_a_swap_is_compared_with_the_layer_of_the_training_seed_by_seed(tmp_path: Path) -> None:
    cells = {
        "psal3 psal3 0": cell(0.002, 0.004),
        "psal3 psal3 1": cell(0.004, 0.008),
        "psal3 psal3 2": cell(0.005, 0.005),
        "psal3 psal1 0": cell(0.003, 0.004),
        "psal3 psal1 1": cell(0.0044, 0.004),
        "psal3 psal1 2": cell(0.005, 0.006),
    }
    own, swapped, gray = rows_of(tmp_path, "swap", cells)
    assert swapped["by the swap, val"] == "+10 % (+0 to +50 %)"
    assert swapped["by the swap, held-out"] == "+0 % (-50 to +20 %)"
    assert own["by the swap, val"] == gray["by the swap, val"] == ""
    assert (own["below gray"], swapped["below gray"]) == ("1", "0")


def test_tables_without_swaps_have_no_such_column(tmp_path: Path) -> None:
    own, _ = rows_of(tmp_path, "neighbors", {"psal3 psal3 0": cell(0.002, 0.004)})
    assert not any("swap" in title for title in own)
