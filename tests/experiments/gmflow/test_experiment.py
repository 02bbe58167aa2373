"""The command ``psal bench swap`` on the published network at tiny sizes, if the network is there."""

import json
from functools import partial
from pathlib import Path
from typing import Any, get_args

import pytest
from PIL import Image
from support.commands import Run
from support.frames import write_davis

from psal.cli.bench import SwapPart
from psal.experiments.gmflow import experiment


@pytest.fixture
def davis(tmp_path: Path) -> Path:
    """Two sequences of small frames."""
    return write_davis(tmp_path / "DAVIS", {"bear": ("train", 12), "swan": ("val", 25)})


@pytest.fixture
def bench(run_here: Run, published: Path, davis: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """``psal bench swap`` at sizes of few pixels."""
    monkeypatch.setattr(experiment, "SIZES", {(64, 96): 2, (128, 192): 1})
    monkeypatch.setattr(experiment, "DISTANCES", (3,))
    monkeypatch.setattr(experiment, "ATTENTIONS", ("exact4", "psal4"))
    monkeypatch.setattr(experiment, "COST_ATTENTIONS", ("full-materialized", "psal4"))
    options = ("--weights", published, "--data", davis, "--threads", 1, "--out", tmp_path / "results")
    return partial(run_here, "bench", "swap", *options)


def cells(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "gmflow.json").read_text())["cells"]
    return found


def is_picture(path: Path) -> bool:
    with Image.open(path) as picture:
        return picture.size > (100, 100)


@pytest.mark.slow
def test_parts_are_measured_one_after_the_other(tmp_path: Path, bench: Run) -> None:
    results = tmp_path / "results"
    first = bench("--part", "quality")
    assert first.returncode == 0
    assert first.stderr == "warning: gmflow.png is not drawn: run --part memory first\n"
    quality = cells(results)
    assert set(quality) == {"64x96 3 bear", "64x96 3 swan"}
    assert quality["64x96 3 bear"]["frames"] == [6, 9]
    assert set(quality["64x96 3 bear"]["rows"]) == {
        f"{attention} {place}" for attention in ("exact4", "psal4") for place in ("matching", "propagation", "both")
    }
    assert is_picture(results / "gmflow_flows.png")

    done = bench("--limit", "0")
    assert (done.returncode, done.stderr) == (0, "")
    measured = cells(results)
    assert {name: measured[name] for name in quality} == quality
    assert sorted(set(measured) - set(quality)) == [
        "128x192 3 bear", "128x192 full-materialized memory", "128x192 full-materialized time",
        "128x192 psal4 memory", "128x192 psal4 time", "64x96 full-materialized memory",
        "64x96 full-materialized time", "64x96 psal4 memory", "64x96 psal4 time",
    ]  # fmt: skip
    for quantity in ("memory", "time"):
        assert measured[f"128x192 psal4 {quantity}"]["computed_from"] == [64, 96]
    assert "seconds" in measured["64x96 full-materialized time"]
    assert "In both places, 3 apart, by size" in done.stdout
    assert is_picture(results / "gmflow.png")
    assert bench().returncode == 0
    assert cells(results) == measured


def test_the_command_offers_the_parts_that_there_are() -> None:
    assert get_args(SwapPart) == ("all", *experiment.PARTS)


@pytest.mark.slow
def test_memory_of_one_layer_is_measured_alone(tmp_path: Path, bench: Run) -> None:
    done = bench("--part", "memory", "--layers", "psal4")
    assert (done.returncode, done.stderr) == (0, "warning: gmflow_flows.png is not drawn: run --part quality first\n")
    assert set(cells(tmp_path / "results")) == {"64x96 psal4 memory", "128x192 psal4 memory"}
    assert is_picture(tmp_path / "results" / "gmflow.png")


def test_an_attention_whose_cost_is_not_measured_is_refused(tmp_path: Path, bench: Run) -> None:
    done = bench("--part", "memory", "--layers", "psal5")
    assert done.returncode == 2
    assert "memory and time are those of full-materialized, psal4, got 'psal5'" in done.stderr
    assert not (tmp_path / "results").exists()
