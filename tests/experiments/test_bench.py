"""The commands ``psal bench …`` at tiny sizes: what they write, resume and refuse."""

import json
import re
import shutil
from functools import partial
from pathlib import Path
from typing import Any, get_args

import pytest
from PIL import Image
from support.commands import Run
from support.frames import write_davis

from psal.cli.bench import ColorizationTable
from psal.experiments.colorization_tables import COMPARISONS
from psal.training.colorize import ColorizeTask
from psal.training.loop import train
from psal.training.settings import Settings


@pytest.fixture
def bench(run_here: Run) -> Run:
    """``psal bench`` in this process."""
    return partial(run_here, "bench")


@pytest.fixture
def davis(tmp_path: Path) -> Path:
    """Two sequences of 12 and 25 small frames; the held-out one has too few for other experiments."""
    return write_davis(tmp_path / "DAVIS", {"bear": ("train", 12), "cat": ("train", 4), "swan": ("val", 25)})


def cells(folder: Path, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / f"{name}.json").read_text())["cells"]
    return found


def table_rows(output: str) -> list[list[str]]:
    """Cells of the tables on the terminal."""
    return [[cell.strip() for cell in line.strip("│").split("│")] for line in output.splitlines() if "│" in line]


def is_picture(path: Path) -> bool:
    with Image.open(path) as picture:
        return picture.size > (100, 100)


def test_memory_is_measured_or_extrapolated_and_kept(tmp_path: Path, bench: Run) -> None:
    arguments = ("memory", "--sizes", "16,64", "--layers", "psal1", "--limit", "0.0005", "--out", tmp_path)
    done = bench(*arguments)
    assert (done.returncode, done.stderr) == (0, "")
    measured = cells(tmp_path, "memory")
    assert set(measured) == {f"psal1 {size} {mode}" for size in (16, 64) for mode in ("forward", "backward")}
    small, large = measured["psal1 16 forward"], measured["psal1 64 forward"]
    assert small["peak"] > 0
    assert small["seconds"] > 0
    assert large["computed_from"] == 16
    assert large["peak"] == 16 * small["peak"]
    assert "computed_from" not in small
    [_, at_16, at_64] = next(row for row in table_rows(done.stdout) if row[0] == "PSAL 1")
    assert re.fullmatch(r"[\d.e-]+ \([\d.e-]+\)", at_16)
    assert re.fullmatch(r"≈ [\d.e-]+ \(≈ [\d.e-]+\)", at_64)
    assert "Measured on 20" in done.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["memory.json", "memory.png"]
    assert is_picture(tmp_path / "memory.png")

    assert bench(*arguments).returncode == 0
    assert cells(tmp_path, "memory") == measured

    other = bench(*arguments[:2], "16", *arguments[3:])
    assert other.returncode == 2
    assert "memory.json was measured with other settings (sizes): add --overwrite" in other.stderr
    assert cells(tmp_path, "memory") == measured


def test_reconstruction_runs_on_the_bundled_pair(tmp_path: Path, bench: Run) -> None:
    done = bench("reconstruction", "--sizes", "24", "--layers", "linear,psal3", "--out", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    loss = {name: cell["loss"] for name, cell in cells(tmp_path, "reconstruction").items() if "loss" in cell}
    assert set(loss) == {f"{name} 24 stereo pair" for name in ("linear", "psal3", "full-stride1")}
    assert loss["psal3 24 stereo pair"] < loss["linear 24 stereo pair"]
    assert any(row[:2] == ["24²", "1"] for row in table_rows(done.stdout))
    assert is_picture(tmp_path / "reconstruction.png")
    assert is_picture(tmp_path / "reconstruction_strip.png")


def test_reconstruction_takes_pairs_from_all_sequences_in_turn(tmp_path: Path, davis: Path, bench: Run) -> None:
    done = bench(
        "reconstruction", "--data", davis, "--pairs", 3, "--sizes", "16", "--layers", "psal1", "--out", tmp_path
    )
    assert (done.returncode, done.stderr) == (0, "")
    names = [name for name in cells(tmp_path, "reconstruction") if name.startswith("psal1") and "memory" not in name]
    assert names == ["psal1 16 bear 10", "psal1 16 swan 10", "psal1 16 swan 20"]
    [_, loss, *_] = next(row for row in table_rows(done.stdout) if row[0] == "PSAL 1")
    assert re.fullmatch(r"0\.\d+ \(0\.\d+\)", loss)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("memory", "--layers", "psal0"), "there is no attention named 'psal0': choose from full, "),
        (("memory", "--sizes", "64,x"), "'64,x' is not a list of sizes such as 64,128"),
        (("memory", "--sizes", "0"), "'0' is not a list of sizes"),
        (("memory", "--device", "tpu"), "'tpu' is not one of 'auto', 'cpu', 'cuda'"),
        (("reconstruction", "--data", "nowhere"), "nowhere/ImageSets/2016/train.txt does not exist: the data must be"),
        (("reconstruction", "--pairs", "0"), "'--pairs'"),
        (("colorization", "table", "--data", "x"), "'table' is not one of 'neighbors', 'similarity', 'cost', 'swap'"),
        (
            ("colorization", "swap", "--data", "x", "--layers", "psal1,full"),
            "the table has no network trained with 'full': choose from psal1, psal-aggregate, psal3, ",
        ),
        (("memory", "--readme", "README.md"), "No such option"),
    ],
)
def test_wrong_usage_is_named(
    arguments: tuple[str, ...], message: str, tmp_path: Path, bench: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    done = bench(*arguments, "--out", tmp_path / "results")
    assert done.returncode == 2
    assert message in " ".join(done.stderr.split())
    assert not (tmp_path / "results").exists()


def test_a_data_folder_one_too_high_is_pointed_out(tmp_path: Path, davis: Path, bench: Run) -> None:
    done = bench("reconstruction", "--data", davis.parent, "--out", tmp_path / "results")
    assert done.returncode == 2
    assert f"as {davis} seems to be" in done.stderr
    assert done.stderr.count("\n") == 1


def test_too_few_pairs_are_refused(tmp_path: Path, davis: Path, bench: Run) -> None:
    done = bench("reconstruction", "--data", davis, "--pairs", 30, "--out", tmp_path / "results")
    assert done.returncode == 2
    assert "has only 3 pairs of frames 10 apart, not 30" in done.stderr


def test_a_broken_frame_is_named_and_earlier_cells_are_kept(tmp_path: Path, davis: Path, bench: Run) -> None:
    broken = davis / "JPEGImages" / "480p" / "swan" / "00010.jpg"
    broken.write_bytes(b"not a picture")
    options = ("reconstruction", "--data", davis, "--pairs", 3, "--sizes", "16", "--layers", "psal1")
    done = bench(*options, "--out", tmp_path)
    assert done.returncode == 2
    assert f"{broken} cannot be read" in done.stderr
    assert done.stderr.count("\n") == 1
    assert list(cells(tmp_path, "reconstruction")) == ["psal1 16 bear 10"]


def test_a_file_of_another_kind_is_not_replaced(tmp_path: Path, bench: Run) -> None:
    (tmp_path / "memory.json").write_text("[1, 2]")
    done = bench("memory", "--layers", "psal1", "--sizes", "16", "--out", tmp_path)
    assert done.returncode == 2
    assert "is not a results file of this command: add --overwrite" in done.stderr
    assert (tmp_path / "memory.json").read_text() == "[1, 2]"


def test_help_says_what_each_table_is(bench: Run) -> None:
    said = " ".join(bench("--help").stdout.split())
    assert "Table 1: memory, time and operations" in said
    assert "Tables 2 and 3" in said


def test_networks_are_trained_and_tested(tmp_path: Path, davis: Path, bench: Run) -> None:
    broken = davis / "JPEGImages" / "480p" / "bear" / "00003.jpg"
    broken.write_bytes(b"x")
    options = ("colorization", "similarity", "--data", davis, "--size", 16, "--iterations", 25)
    folders = ("--runs", tmp_path / "runs", "--out", tmp_path / "results")
    done = bench(*options, *folders)
    assert done.returncode == 0
    assert done.stderr.count(f"warning: {broken} cannot be read") == 1  # although two networks are trained
    measured = cells(tmp_path / "results", "colorization_similarity")
    assert set(measured) == {
        "gray", "full-dot full-dot 0", "full-dot cost",
        "full-materialized full-materialized 0", "full-materialized cost",
    }  # fmt: skip
    tested = measured["full-materialized full-materialized 0"]
    assert list(tested["val"]["by_distance"]) == ["1", "3", "5", "10"]
    assert list(tested["holdout"]["by_distance"]) == ["1"]
    label = "Full attention, dot product"
    [_, _, seeds, _, *losses] = next(row for row in table_rows(done.stdout) if row[0] == label)
    dot = measured["full-dot full-dot 0"]
    assert seeds == "1"
    assert losses[:2] == [f"{dot[split]['loss']:.5f}" for split in ("val", "holdout")]
    assert is_picture(tmp_path / "results" / "colorization_similarity.png")
    assert is_picture(tmp_path / "results" / "colorization_similarity_strip.png")
    assert bench(*options, *folders).returncode == 0
    assert cells(tmp_path / "results", "colorization_similarity") == measured
    shutil.rmtree(tmp_path / "runs")
    without = bench(*options, *folders)
    assert without.returncode == 0
    assert "colorization_similarity_strip.png is not drawn" in without.stderr
    assert "Table 5" in without.stdout


def test_more_seeds_are_added_to_the_measured_ones(tmp_path: Path, davis: Path, bench: Run) -> None:
    options = ("colorization", "neighbors", "--data", davis, "--size", 16, "--iterations", 2)
    folders = ("--runs", tmp_path / "runs", "--out", tmp_path / "results")
    assert bench(*options, *folders, "--seeds", 1).returncode == 0
    first = cells(tmp_path / "results", "colorization_neighbors")
    done = bench(*options, *folders, "--seeds", 2)
    assert done.returncode == 0
    both = cells(tmp_path / "results", "colorization_neighbors")
    assert first.items() < both.items()
    found = [both[f"psal7 psal7 {seed}"]["val"]["loss"] for seed in (0, 1)]
    [_, _, seeds, _, loss, *_] = next(row for row in table_rows(done.stdout) if row[0] == "PSAL 7")
    assert seeds == "2"
    assert loss == f"{sum(found) / 2:.5f} ({min(found):.5f} to {max(found):.5f})"


def test_a_network_is_measured_without_the_others(tmp_path: Path, davis: Path, bench: Run) -> None:
    options = ("colorization", "neighbors", "--data", davis, "--size", 16, "--iterations", 2, "--seeds", 1)
    folders = ("--runs", tmp_path / "runs", "--out", tmp_path / "results")
    done = bench(*options, *folders, "--layers", "psal7")
    assert done.returncode == 0
    assert set(cells(tmp_path / "results", "colorization_neighbors")) == {"gray", "psal7 psal7 0", "psal7 cost"}
    assert [row[0] for row in table_rows(done.stdout)] == ["PSAL 7", "gray frame"]
    assert is_picture(tmp_path / "results" / "colorization_neighbors_strip.png")


def test_a_run_of_another_kind_is_not_taken_for_a_row(tmp_path: Path, davis: Path, bench: Run) -> None:
    train(ColorizeTask(davis, "linear", 16, 0), Settings(2), tmp_path / "runs" / "full-dot_16_2_0")
    options = ("colorization", "similarity", "--data", davis, "--size", 16, "--iterations", 2)
    done = bench(*options, "--runs", tmp_path / "runs", "--out", tmp_path / "results")
    assert done.returncode == 2
    assert "full-dot_16_2_0 holds a run with attention linear, not full-dot" in done.stderr


def test_the_command_offers_the_tables_that_there_are() -> None:
    assert get_args(ColorizationTable) == tuple(COMPARISONS)
