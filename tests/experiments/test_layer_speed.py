"""``psal bench layer``: the table that it prints, and the model behind its bounds."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from support.commands import Run

from psal.experiments import gpu_bounds
from psal.experiments.gpu_bounds import CARDS, Problem, card_named, search_work, works


def test_every_op_is_timed_and_the_searches_are_compared_with_exact_matches(tmp_path: Path, run_here: Run) -> None:
    arguments = ("bench", "layer", "--sizes", "20", "--device", "cpu", "--threads", "1", "--out", tmp_path)
    done = run_here(*arguments)
    assert (done.returncode, done.stderr) == (0, "")
    cell = json.loads((tmp_path / "layer_speed.json").read_text())["cells"]["20 float32"]
    assert {row["op"] for row in cell["ops"]} == set(works(Problem(20)))
    assert all(row["seconds"] > 0 and row["bound"] is None for row in cell["ops"])
    assert all(ratio >= 0.999 for ratio in cell["cost"].values())
    assert "The layer on CPU" in done.stdout
    assert "search, seeded" in done.stdout


def test_a_command_refuses_a_device_that_is_not_there(tmp_path: Path, run_here: Run) -> None:
    done = run_here("bench", "layer", "--device", "cuda", "--out", tmp_path)
    assert done.returncode == 2
    assert "torch finds no CUDA device" in done.stderr


@pytest.mark.parametrize(("card", "milliseconds"), [("A100", 11.5), ("H100", 9.1), ("RTX 4090", 10.4)])
def test_the_bound_of_the_papers_schedule_is_that_of_its_candidates(card: str, milliseconds: float) -> None:
    """133 candidates at 512 × 512: 3 to start, then 16 jumps and 10 draws in each of 5 iterations."""
    work = search_work(Problem(512), "random")
    assert work.instructions == 512**2 * 133 * 784 * 2
    assert 1e3 * work.seconds_on(CARDS[card]) == pytest.approx(milliseconds, rel=0.01)


@pytest.mark.parametrize("op", works(Problem(64)))
def test_four_times_the_pixels_take_about_four_times_as_long(op: str) -> None:
    small, large = (works(Problem(size))[op].seconds_on(CARDS["A100"]) for size in (256, 512))
    assert 4 <= large / small < 4.5  # a larger map has one more random draw


def test_half_types_read_half_of_the_bytes() -> None:
    problem = Problem(256)
    full, half = (search_work(p, "random") for p in (problem, replace(problem, bytes_per_value=2)))
    assert half.l1 == full.l1 / 2
    assert half.instructions == 2 * full.instructions


def test_cards_are_known_by_their_names() -> None:
    assert card_named("NVIDIA A100-SXM4-80GB") is CARDS["A100"]
    assert card_named("NVIDIA GeForce GTX 1080") is None


def test_the_documented_bounds_have_a_row_per_op() -> None:
    for table in gpu_bounds.tables():
        assert [row[0] for row in table.rows] == list(works(Problem(8)))
