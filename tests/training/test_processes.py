"""Training on two processes."""

from pathlib import Path

import pytest
from support.commands import Run
from support.tolerances import assert_close
from support.training_runs import SIZE, assert_same_weights, frame, losses, on_two_processes, weights


@pytest.mark.parametrize(("attention", "batch"), [("psal3", 1), pytest.param("linear", 2, marks=pytest.mark.slow)])
def test_two_processes_take_the_step_of_one_with_twice_the_batch(
    attention: str, batch: int, train: Run, davis: Path, tmp_path: Path
) -> None:
    broken = frame(davis, "bear", 1)
    broken.write_bytes(b"x")
    options = ("--attention", attention, "--iterations", 9, "--size", SIZE, "--threads", 1, "--data", davis)
    assert train(tmp_path / "one", *options, "--batch", 2 * batch).returncode == 0
    own = ("--batch", batch, "--out", tmp_path / "two")
    done = on_two_processes("-m", "psal.cli", "train", "colorize", *options, *own)
    assert done.returncode == 0, done.stderr
    found, wanted = weights(tmp_path / "two"), weights(tmp_path / "one")
    for name in wanted:
        assert_close(found[name], wanted[name])
    assert [step for step, _ in losses(tmp_path / "two")] == ["9"]
    assert done.stdout.count("9 steps") == 1  # only process 0 prints
    assert done.stderr.count(f"warning: {broken}") == 1
    assert "warning: skipped 1 frame" in done.stderr


FOLDER_EACH = """
import os, sys
from pathlib import Path
from psal.training.colorize import ColorizeTask
from psal.training.loop import train
from psal.training.settings import Settings

import torch
torch.set_num_threads(1)
task = ColorizeTask(Path(sys.argv[1]), "psal3", 20, 0)
train(task, Settings(int(sys.argv[3])), Path(sys.argv[2]) / os.environ["RANK"])
"""


@pytest.mark.slow
def test_processes_without_a_shared_folder_resume_together(davis: Path, tmp_path: Path) -> None:
    script = tmp_path / "each.py"
    script.write_text(FOLDER_EACH)
    for out, iterations in (("whole", 4), ("parts", 2), ("parts", 4)):
        done = on_two_processes(script, davis, tmp_path / out, iterations)
        assert done.returncode == 0, done.stderr
    assert_same_weights(tmp_path / "parts" / "0", tmp_path / "whole" / "0")


def test_processes_with_different_settings_are_refused(davis: Path, tmp_path: Path) -> None:
    script = tmp_path / "each.py"
    script.write_text(FOLDER_EACH.replace("int(sys.argv[3])", "3 + int(os.environ['RANK'])"))
    done = on_two_processes(script, davis, tmp_path / "run")
    assert done.returncode != 0
    assert "process 1 was started with other settings than process 0: iterations 4, not 3" in done.stderr
