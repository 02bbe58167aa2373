"""Training runs: the same bits after a stop, a kill, and on several processes."""

import csv
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from frames import write_davis
from PIL import Image
from safetensors.torch import load_file
from tolerances import assert_close, assert_same_bits

COMMAND = (sys.executable, "-m", "psal.cli", "train", "colorize")
SIZE = 20


@pytest.fixture
def davis(tmp_path: Path) -> Path:
    """Three sequences to train on and one to look at."""
    sequences = {"bear": ("train", 4), "cat": ("train", 3), "dog": ("train", 5), "swan": ("val", 13)}
    return write_davis(tmp_path / "DAVIS", sequences)


def train(data: Path, out: Path, *options: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, on one thread."""
    command = [*COMMAND, "--data", data, "--out", out, "--size", SIZE, "--threads", 1, *options]
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, timeout=300, check=False, env=os.environ | environment
    )
    assert "Traceback" not in done.stderr
    return done


def weights(run: Path) -> dict[str, Any]:
    return load_file(run / "model.safetensors")


def losses(run: Path) -> list[tuple[str, str]]:
    with (run / "log.csv").open() as file:
        return [(row["step"], row["loss"]) for row in csv.DictReader(file)]


def assert_same_weights(run: Path, expected: Path) -> None:
    found, wanted = weights(run), weights(expected)
    assert found.keys() == wanted.keys()
    for name in wanted:
        assert_same_bits(found[name], wanted[name])


def test_a_run_that_goes_on_ends_with_the_same_bits(davis: Path, tmp_path: Path) -> None:
    assert train(davis, tmp_path / "whole", "--iterations", 7).returncode == 0
    first = train(davis, tmp_path / "parts", "--iterations", 3)
    assert (first.returncode, first.stderr) == (0, "")
    second = train(davis, tmp_path / "parts", "--iterations", 7)
    assert (second.returncode, second.stderr) == (0, "")
    said = r"7 steps, 3 of them before, loss 0\.\d{5}, \S+ s a step; written to "
    assert re.match(said, second.stdout)
    assert_same_weights(tmp_path / "parts", tmp_path / "whole")
    with Image.open(tmp_path / "whole" / "look_000007.png") as picture:
        assert picture.size == (4 * SIZE, 2 * SIZE)


def test_the_weights_written_are_the_mean_of_the_first_steps(davis: Path, tmp_path: Path) -> None:
    steps = []
    for count in (1, 2, 3):
        assert train(davis, tmp_path / str(count), "--iterations", count, "--average", 1).returncode == 0
        steps.append(weights(tmp_path / str(count)))
    assert train(davis, tmp_path / "mean", "--iterations", 3).returncode == 0
    for name, found in weights(tmp_path / "mean").items():
        assert_close(found, torch.stack([step[name] for step in steps]).mean(0))


def test_training_lowers_the_loss(davis: Path, tmp_path: Path) -> None:
    done = train(davis, tmp_path / "run", "--iterations", 150, "--learning-rate", 0.01)
    assert (done.returncode, done.stderr) == (0, "")
    loss = [float(value) for _, value in losses(tmp_path / "run")]
    assert len(loss) == 3
    assert loss[-1] < 0.7 * loss[0]


KILLED = """
import os, signal, sys
from pathlib import Path
from psal.training.colorize import ColorizeTask
from psal.training.loop import Settings, train

class Killed(ColorizeTask):
    def examples(self, numbers):
        if 5 in numbers:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().examples(numbers)

import torch
torch.set_num_threads(1)
task = Killed(Path(sys.argv[1]), "psal3", 20, 0)
train(task, Settings(iterations=9, checkpoint_every=2, log_every=1), Path(sys.argv[2]))
"""


def test_a_killed_run_loses_only_what_came_after_its_last_checkpoint(davis: Path, tmp_path: Path) -> None:
    killed = subprocess.run([sys.executable, "-c", KILLED, davis, tmp_path / "run"], check=False, timeout=300)
    assert killed.returncode == -signal.SIGKILL
    assert [step for step, _ in losses(tmp_path / "run")] == ["1", "2", "3", "4", "5"]
    settings = ("--iterations", 9, "--checkpoint-every", 2)
    again = train(davis, tmp_path / "run", *settings)
    assert again.stdout.startswith("9 steps, 4 of them before")
    assert [step for step, _ in losses(tmp_path / "run")] == ["1", "2", "3", "4", "9"]  # row 5 is made anew
    assert train(davis, tmp_path / "whole", *settings).returncode == 0
    assert_same_weights(tmp_path / "run", tmp_path / "whole")


def test_two_processes_take_the_step_of_one_with_twice_the_batch(davis: Path, tmp_path: Path) -> None:
    """With a layer that draws no random numbers, so that only the gradients' mean can differ."""
    options = ("--attention", "linear", "--iterations", 3)
    assert train(davis, tmp_path / "one", *options, "--batch", 2).returncode == 0
    torchrun = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m")
    command = [*torchrun, "psal.cli", *COMMAND[3:], "--data", davis, "--out", tmp_path / "two", "--size", SIZE]
    done = subprocess.run(
        list(map(str, [*command, "--threads", 1, *options])), capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    found, wanted = weights(tmp_path / "two"), weights(tmp_path / "one")
    for name in wanted:
        assert_close(found[name], wanted[name])
    assert [step for step, _ in losses(tmp_path / "two")] == ["3"]


def test_bfloat16_trains(davis: Path, tmp_path: Path) -> None:
    assert train(davis, tmp_path / "run", "--iterations", 2, "--precision", "bf16-mixed").returncode == 0
    assert all(x.dtype == torch.float32 and x.isfinite().all() for x in weights(tmp_path / "run").values())


def test_a_broken_frame_is_named_skipped_and_counted(davis: Path, tmp_path: Path) -> None:
    broken = davis / "JPEGImages" / "480p" / "bear" / "00001.jpg"
    broken.write_bytes(broken.read_bytes()[:200])
    done = train(davis, tmp_path / "run", "--iterations", 30)
    assert done.returncode == 0
    assert f"warning: {broken} cannot be read" in done.stderr
    assert done.stderr.endswith("warning: 1 frames were left out\n")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--attention", "psal0"), "there is no attention named 'psal0'"),
        (("--data", "nowhere"), "nowhere/ImageSets/2016/train.txt is not there"),
        (("--precision", "8-bit"), "precision"),
    ],
)
def test_wrong_usage_is_named(options: tuple[str, ...], message: str, davis: Path, tmp_path: Path) -> None:
    done = train(davis, tmp_path / "run", "--iterations", 1, *options)
    assert done.returncode == 2
    assert message in done.stderr
    assert not (tmp_path / "run").exists()


def test_a_folder_with_another_run_is_refused(davis: Path, tmp_path: Path) -> None:
    assert train(davis, tmp_path / "run", "--iterations", 1).returncode == 0
    done = train(davis, tmp_path / "run", "--iterations", 2, "--attention", "psal1", "--seed", 4)
    assert done.returncode == 2
    assert "holds a run with attention psal3, not psal1, seed 0, not 4" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_trained_network_is_measured_with_its_own_layer_and_with_another(davis: Path, tmp_path: Path) -> None:
    assert train(davis, tmp_path / "run", "--iterations", 2, "--attention", "full").returncode == 0

    def evaluate(*options: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "psal.cli", "eval", "colorize", tmp_path / "run", "--data", davis, *options]
        return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=300, check=False)

    own, every = evaluate(), evaluate("--attention", f"psal{SIZE**2}")
    assert (own.returncode, own.stderr) == (0, "")
    assert [line.split()[0] for line in own.stdout.splitlines()] == ["±1", "±3", "±5", "mean"]  # of 13 frames
    assert every.stdout == own.stdout  # all keys are full attention
    assert evaluate("--attention", "linear").stdout != own.stdout
    (tmp_path / "run" / "model.safetensors").write_bytes(b"broken")
    broken = evaluate()
    assert broken.returncode == 2
    assert "model.safetensors cannot be read as weights" in broken.stderr
    assert broken.stderr.count("\n") == 1
