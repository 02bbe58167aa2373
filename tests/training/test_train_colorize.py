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
from PIL import Image
from safetensors.torch import load_file, save_file
from support.frames import write_davis
from support.tolerances import assert_close, assert_same_bits
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

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


def frame(davis: Path, sequence: str, number: int) -> Path:
    return davis / "JPEGImages" / "480p" / sequence / f"{number:05d}.jpg"


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


@pytest.mark.parametrize("precision", ["32-true", "64-true", "bf16-mixed"])
def test_a_run_that_goes_on_ends_with_the_same_bits(precision: str, davis: Path, tmp_path: Path) -> None:
    assert train(davis, tmp_path / "whole", "--iterations", 7, "--precision", precision).returncode == 0
    first = train(davis, tmp_path / "parts", "--iterations", 3, "--precision", precision)
    assert first.returncode == 0, first.stderr
    second = train(davis, tmp_path / "parts", "--iterations", 7, "--precision", precision)
    assert second.returncode == 0, second.stderr
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
    def example(self, number):
        if number == 5:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().example(number)

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


def on_two_processes(*command: object) -> subprocess.CompletedProcess[str]:
    torchrun = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    return subprocess.run(
        list(map(str, [*torchrun, *command])), capture_output=True, text=True, timeout=300, check=False
    )


@pytest.mark.parametrize(("attention", "batch"), [("psal3", 1), ("linear", 2)])
def test_two_processes_take_the_step_of_one_with_twice_the_batch(
    attention: str, batch: int, davis: Path, tmp_path: Path
) -> None:
    broken = frame(davis, "bear", 1)
    broken.write_bytes(b"x")
    options = ("--attention", attention, "--iterations", 9, "--size", SIZE, "--threads", 1, "--data", davis)
    assert train(davis, tmp_path / "one", *options, "--batch", 2 * batch).returncode == 0
    own = ("--batch", batch, "--out", tmp_path / "two")
    done = on_two_processes("-m", "psal.cli", "train", "colorize", *options, *own)
    assert done.returncode == 0, done.stderr
    found, wanted = weights(tmp_path / "two"), weights(tmp_path / "one")
    for name in wanted:
        assert_close(found[name], wanted[name])
    assert [step for step, _ in losses(tmp_path / "two")] == ["9"]
    assert done.stdout.count("9 steps") == 1  # the first process speaks for all
    assert done.stderr.count(f"warning: {broken}") == 1
    assert "warning: 1 frame was left out" in done.stderr


STOPPED = """
import sys
from pathlib import Path
from psal.training.colorize import ColorizeTask
from psal.training.loop import Settings, train

class Stopped(ColorizeTask):
    def look(self, model):
        raise KeyboardInterrupt

import torch
torch.set_num_threads(1)
train(Stopped(Path(sys.argv[1]), "psal3", 20, 0), Settings(5), Path(sys.argv[2]))
"""


def test_weights_are_those_of_the_last_step_after_a_stop_between_it_and_them(davis: Path, tmp_path: Path) -> None:
    assert train(davis, tmp_path / "whole", "--iterations", 5).returncode == 0
    assert train(davis, tmp_path / "run", "--iterations", 3).returncode == 0
    subprocess.run([sys.executable, "-c", STOPPED, davis, tmp_path / "run"], check=False, timeout=300)
    again = train(davis, tmp_path / "run", "--iterations", 5)
    assert again.stdout.startswith("5 steps, 5 of them before, loss 0.0")
    assert_same_weights(tmp_path / "run", tmp_path / "whole")


FOLDER_EACH = """
import os, sys
from pathlib import Path
from psal.training.colorize import ColorizeTask
from psal.training.loop import Settings, train

import torch
torch.set_num_threads(1)
task = ColorizeTask(Path(sys.argv[1]), "psal3", 20, 0)
train(task, Settings(int(sys.argv[3])), Path(sys.argv[2]) / os.environ["RANK"])
"""


def test_processes_that_share_no_folder_go_on_together(davis: Path, tmp_path: Path) -> None:
    script = tmp_path / "each.py"
    script.write_text(FOLDER_EACH)
    for out, iterations in (("whole", 4), ("parts", 2), ("parts", 4)):
        done = on_two_processes(script, davis, tmp_path / out, iterations)
        assert done.returncode == 0, done.stderr
    assert_same_weights(tmp_path / "parts" / "0", tmp_path / "whole" / "0")


def test_processes_that_were_started_unlike_are_told_so(davis: Path, tmp_path: Path) -> None:
    script = tmp_path / "each.py"
    script.write_text(FOLDER_EACH.replace("int(sys.argv[3])", "3 + int(os.environ['RANK'])"))
    done = on_two_processes(script, davis, tmp_path / "run")
    assert done.returncode != 0
    assert "process 1 was started with other settings than process 0: iterations 4, not 3" in done.stderr


def test_bfloat16_trains(davis: Path, tmp_path: Path) -> None:
    assert train(davis, tmp_path / "run", "--iterations", 2, "--precision", "bf16-mixed").returncode == 0
    assert all(x.dtype == torch.float32 and x.isfinite().all() for x in weights(tmp_path / "run").values())


def test_a_broken_frame_is_named_skipped_and_counted(davis: Path, tmp_path: Path) -> None:
    broken, looked_at = frame(davis, "bear", 1), frame(davis, "swan", 6)
    broken.write_bytes(broken.read_bytes()[:200])
    looked_at.write_bytes(b"x")  # the middle one: nothing is left to look at
    done = train(davis, tmp_path / "run", "--iterations", 30)
    assert done.returncode == 0
    assert f"warning: {broken} cannot be read" in done.stderr
    assert f"warning: {looked_at} cannot be read" in done.stderr
    assert done.stderr.endswith("warning: 2 frames were left out\n")
    assert not list((tmp_path / "run").glob("look*"))
    later = train(davis, tmp_path / "run", "--iterations", 31)
    assert later.stderr == done.stderr  # step 31 itself need not meet it


def test_a_frame_that_claims_to_be_huge_is_left_out(davis: Path, tmp_path: Path) -> None:
    huge = frame(davis, "bear", 1)
    content = bytearray(huge.read_bytes())
    sizes = content.index(b"\xff\xc0") + 5
    content[sizes : sizes + 4] = b"\xff\x00\xff\x00"
    huge.write_bytes(content)
    done = train(davis, tmp_path / "run", "--iterations", 30)
    assert done.returncode == 0
    assert f"warning: {huge} cannot be read" in done.stderr


def test_short_sequences_are_looked_at_all_the_same(tmp_path: Path) -> None:
    davis = write_davis(tmp_path / "DAVIS", {"bear": ("train", 2), "swan": ("val", 3)})
    assert train(davis, tmp_path / "run", "--iterations", 1).returncode == 0
    with Image.open(tmp_path / "run" / "look_000001.png") as picture:
        assert picture.size == (4 * SIZE, 2 * SIZE)


def test_what_diverges_is_not_written(davis: Path, tmp_path: Path) -> None:
    options = ("--learning-rate", 1e30, "--checkpoint-every", 1)
    done = train(davis, tmp_path / "run", "--iterations", 9, *options)
    assert done.returncode == 2
    assert "start in another folder, with a lower learning rate than 1e+30" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "run" / "model.safetensors").exists()
    state = torch.load(tmp_path / "run" / "checkpoint.pt")
    assert all(x.isfinite().all() for x in state["model"].values())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--attention", "psal0"), "there is no attention named 'psal0'"),
        (("--data", "nowhere"), "nowhere/ImageSets/2016/train.txt does not exist"),
        (("--precision", "8-bit"), "precision"),
        (("--device", "gpu"), "'gpu' is not a device that can be used"),
        (("--learning-rate", "inf"), "the learning rate must be positive and finite, got inf"),
        (("--learning-rate", "0"), "the learning rate must be positive and finite, got 0.0"),
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


def test_a_run_does_not_go_on_with_other_data_or_backwards(davis: Path, tmp_path: Path) -> None:
    assert train(davis, tmp_path / "run", "--iterations", 2).returncode == 0
    other = write_davis(tmp_path / "other", {"bear": ("train", 4), "swan": ("val", 13)})
    done = train(other, tmp_path / "run", "--iterations", 3)
    assert (done.returncode, "holds a run with frames" in done.stderr) == (2, True)
    fewer = train(davis, tmp_path / "run", "--iterations", 1)
    assert fewer.returncode == 2
    assert "holds a run of 2 steps, more than 1" in fewer.stderr


def test_what_is_no_checkpoint_is_named(davis: Path, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "checkpoint.pt").write_bytes(b"broken")
    done = train(davis, tmp_path / "run", "--iterations", 1)
    assert done.returncode == 2
    assert "checkpoint.pt is not a checkpoint: choose another folder\n" in done.stderr
    torch.save({"step": 1}, tmp_path / "run" / "checkpoint.pt")
    assert "checkpoint.pt is of another version: it lacks average, " in train(davis, tmp_path / "run").stderr


def test_the_logs_go_on_without_a_gap(davis: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    for iterations in (50, 100, 150):
        assert train(davis, run, "--iterations", iterations).returncode == 0
        with (run / "log.csv").open("a") as file:
            file.write("20")  # torn off, as by a full disk
    with (run / "log.csv").open() as file:
        assert [row["step"] for row in csv.DictReader(file)] == ["50", "100", "150", "20"]
    events = EventAccumulator(str(run / "tensorboard")).Reload()
    assert [event.step for event in events.Scalars("loss")] == [50, 100, 150]


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
    for settings in ({"task": "colorize"}, {"task": "colorize", "attention": "psal3"}):
        save_file({"x": torch.zeros(1)}, tmp_path / "run" / "model.safetensors", settings)
        foreign = evaluate()
        assert foreign.returncode == 2
        assert "model.safetensors does not hold the weights of a colorizer" in foreign.stderr
        assert foreign.stderr.count("\n") == 1
    (tmp_path / "run" / "model.safetensors").write_bytes(b"broken")
    broken = evaluate()
    assert broken.returncode == 2
    assert "model.safetensors cannot be read as weights" in broken.stderr
    assert broken.stderr.count("\n") == 1
