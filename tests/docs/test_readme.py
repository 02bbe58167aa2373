"""The README's headline figures are those of results/*.json, rounded as they are shown."""

import json
import re
import statistics
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from support.pages import ROOT

README = (ROOT / "README.md").read_text()
ROWS = re.findall(r"^\| (\[.+) \|$", README, re.MULTILINE)
INTEL, AMD = "Intel(R) Xeon(R) Processor", "AMD EPYC"


def results(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ROOT / "results" / f"{name}.json").read_text())
    return found


def value(name: str, cell: str, quantity: str) -> float:
    """The only row of a benchmark's cell with this quantity."""
    [found] = [row["value"] for row in results(name)["cells"][cell]["rows"] if row["quantity"] == quantity]
    return float(found)


def search(against: str) -> list[str]:
    speedup = value("layer", against, "default search: speedup")
    cost = value("layer", against, "default search: mean cost of the best match, ratio")
    return [f"{speedup:,.0f} × as fast", f"cost {cost:.3f} ×"]


def memory() -> list[str]:
    peaks = {name: results("memory")["cells"][f"{name} 512 forward"]["peak"] for name in ("psal3", "full-materialized")}
    return [f"{peaks['psal3'] / 1e9:.3f} GB", f"≈ {peaks['full-materialized'] / 1e9:.0f} GB"]


def reconstruction() -> list[str]:
    found = results("reconstruction")

    def loss(layer: str) -> float:
        return statistics.fmean(found["cells"][f"{layer} 512 {pair}"]["loss"] for pair in found["settings"]["pairs"])

    return [f"loss {loss('psal3'):.5f}", f"stride 10: {loss('full-stride10'):.5f}"]


def trained_network() -> list[str]:
    found = results("gmflow")
    cells = [found["cells"][f"256x448 3 {sequence}"] for sequence in found["settings"]["sequences"]["3"]]

    def change(row: str) -> float:
        return statistics.fmean(cell["rows"][row]["change"] for cell in cells)

    return [
        f"{len(cells)} pairs",
        f"{change('psal4 both'):.3f} pixels with PSAL 4",
        f"{change('exact4 both'):.3f} with",
    ]


def large(cell: str) -> list[str]:
    return [f"{value('editing', cell, 'time'):.1f} s, {value('editing', cell, 'peak memory'):.1f} GB"]


def upscale() -> list[str]:
    return [f"PSNR + {value('editing', 'upscale', 'PSNR, difference'):.1f} dB"]


EXPECTED: dict[str, tuple[Callable[[], list[str]], str, str]] = {  # figures of a row, machine, results file
    "search against exact": (partial(search, "exact"), AMD, "layer"),
    "search against faiss": (partial(search, "faiss"), AMD, "layer"),
    "memory": (memory, INTEL, "memory"),
    "reconstruction": (reconstruction, INTEL, "reconstruction"),
    "trained network": (trained_network, AMD, "gmflow"),
    "object removal": (partial(large, "object_removal"), AMD, "editing"),
    "colorize": (partial(large, "colorize_12_megapixels"), AMD, "editing"),
    "upscale": (upscale, AMD, "editing"),
}


def test_every_row_is_checked() -> None:
    assert len(ROWS) == len(EXPECTED) <= 8


@pytest.mark.parametrize(("row", "name"), list(zip(ROWS, EXPECTED, strict=True)), ids=list(EXPECTED))
def test_a_row_shows_what_was_measured(row: str, name: str) -> None:
    figures, machine, file = EXPECTED[name]
    for figure in figures():
        assert figure in row
    assert results(file)["metadata"]["cpu"] == machine
    assert (" ¹" in row) == (machine == INTEL)
