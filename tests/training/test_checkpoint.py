"""Checkpoints: what an interrupted run loses, and files that are none."""

import signal
import subprocess
import sys
from pathlib import Path

import torch
from support.commands import Run
from support.training_runs import assert_same_weights, losses

KILLED = """
import os, signal, sys
from pathlib import Path
from psal.training.colorize import ColorizeTask
from psal.training.loop import train
from psal.training.settings import Settings

class Killed(ColorizeTask):
    def example(self, number):
        if number == 5:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().example(number)

import torch
torch.set_num_threads(1)
task = Killed(Path(sys.argv[1]), "psal3", 20, 0)
train(task, Settings(iterations=9, checkpoint_every=2, log_every=1), Path(sys.argv[2]))
"""


def test_a_killed_run_loses_only_what_came_after_its_last_checkpoint(train: Run, davis: Path, tmp_path: Path) -> None:
    killed = subprocess.run([sys.executable, "-c", KILLED, davis, tmp_path / "run"], check=False, timeout=300)
    assert killed.returncode == -signal.SIGKILL
    assert [step for step, _ in losses(tmp_path / "run")] == ["1", "2", "3", "4", "5"]
    settings = ("--iterations", 9, "--checkpoint-every", 2)
    again = train(tmp_path / "run", *settings)
    assert again.stdout.startswith("9 steps, resumed at step 4")
    assert [step for step, _ in losses(tmp_path / "run")] == ["1", "2", "3", "4", "9"]  # row 5 is replaced
    assert train(tmp_path / "whole", *settings).returncode == 0
    assert_same_weights(tmp_path / "run", tmp_path / "whole")


def test_a_file_that_is_not_a_checkpoint_is_named(train: Run, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "checkpoint.pt").write_bytes(b"broken")
    done = train(tmp_path / "run", "--iterations", 1)
    assert done.returncode == 2
    assert "checkpoint.pt is not a checkpoint: choose another folder\n" in done.stderr
    torch.save({"step": 1}, tmp_path / "run" / "checkpoint.pt")
    assert "checkpoint.pt is of another version: it lacks average, " in train(tmp_path / "run").stderr
