"""Training runs: resumed ones, their weights, and what they refuse."""

import re
from pathlib import Path

import pytest
import torch
from PIL import Image
from support.commands import Run
from support.frames import write_davis
from support.tolerances import assert_close
from support.training_runs import SIZE, assert_same_weights, losses, weights
from torch import nn

from psal.training import loop
from psal.training.colorize import ColorizeTask
from psal.training.settings import Settings


@pytest.mark.parametrize("precision", ["32-true", "64-true", "bf16-mixed"])
def test_a_resumed_run_ends_with_the_same_bits(precision: str, train: Run, tmp_path: Path) -> None:
    assert train(tmp_path / "whole", "--iterations", 7, "--precision", precision).returncode == 0
    first = train(tmp_path / "parts", "--iterations", 3, "--precision", precision)
    assert first.returncode == 0, first.stderr
    second = train(tmp_path / "parts", "--iterations", 7, "--precision", precision)
    assert second.returncode == 0, second.stderr
    said = r"7 steps, resumed at step 3, loss 0\.\d{5}, \S+ s per step; written to "
    assert re.match(said, second.stdout)
    assert_same_weights(tmp_path / "parts", tmp_path / "whole")
    with Image.open(tmp_path / "whole" / "look_000007.png") as picture:
        assert picture.size == (4 * SIZE, 2 * SIZE)


class Interrupted(ColorizeTask):
    """Ctrl+C after the last step."""

    def look(self, model: nn.Module) -> None:
        raise KeyboardInterrupt


def test_an_interruption_between_the_last_step_and_writing_the_weights_loses_nothing(
    train: Run, davis: Path, tmp_path: Path
) -> None:
    assert train(tmp_path / "whole", "--iterations", 5).returncode == 0
    assert train(tmp_path / "run", "--iterations", 3).returncode == 0
    with pytest.raises(KeyboardInterrupt):
        loop.train(Interrupted(davis, "psal3", SIZE, 0), Settings(5), tmp_path / "run")
    again = train(tmp_path / "run", "--iterations", 5)
    assert again.stdout.startswith("5 steps, resumed at step 5, loss 0.0")
    assert_same_weights(tmp_path / "run", tmp_path / "whole")


def test_the_written_weights_are_the_mean_of_the_first_steps(train: Run, tmp_path: Path) -> None:
    steps = []
    for count in (1, 2, 3):
        assert train(tmp_path / str(count), "--iterations", count, "--average", 1).returncode == 0
        steps.append(weights(tmp_path / str(count)))
    assert train(tmp_path / "mean", "--iterations", 3).returncode == 0
    for name, found in weights(tmp_path / "mean").items():
        assert_close(found, torch.stack([step[name] for step in steps]).mean(0))


def test_training_lowers_the_loss(train: Run, tmp_path: Path) -> None:
    done = train(tmp_path / "run", "--iterations", 150, "--learning-rate", 0.01)
    assert (done.returncode, done.stderr) == (0, "")
    loss = [float(value) for _, value in losses(tmp_path / "run")]
    assert len(loss) == 3
    assert loss[-1] < 0.7 * loss[0]


def test_bfloat16_trains(train: Run, tmp_path: Path) -> None:
    assert train(tmp_path / "run", "--iterations", 2, "--precision", "bf16-mixed").returncode == 0
    assert all(x.dtype == torch.float32 and x.isfinite().all() for x in weights(tmp_path / "run").values())


def test_diverged_weights_are_not_written(train: Run, tmp_path: Path) -> None:
    options = ("--learning-rate", 1e30, "--checkpoint-every", 1)
    done = train(tmp_path / "run", "--iterations", 9, *options)
    assert done.returncode == 2
    assert "start in another folder, with a lower learning rate than 1e+30" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "run" / "model.safetensors").exists()
    state = torch.load(tmp_path / "run" / "checkpoint.pt")
    assert all(x.isfinite().all() for x in state["model"].values())


def test_a_folder_with_another_run_is_refused(train: Run, tmp_path: Path) -> None:
    assert train(tmp_path / "run", "--iterations", 1).returncode == 0
    done = train(tmp_path / "run", "--iterations", 2, "--attention", "psal1", "--seed", 4)
    assert done.returncode == 2
    assert "holds a run with attention psal3, not psal1, seed 0, not 4" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_run_is_not_resumed_with_other_data_or_fewer_steps(train: Run, tmp_path: Path) -> None:
    assert train(tmp_path / "run", "--iterations", 2).returncode == 0
    other = write_davis(tmp_path / "other", {"bear": ("train", 4), "swan": ("val", 13)})
    done = train(tmp_path / "run", "--iterations", 3, "--data", other)
    assert (done.returncode, "holds a run with frames" in done.stderr) == (2, True)
    fewer = train(tmp_path / "run", "--iterations", 1)
    assert fewer.returncode == 2
    assert "holds a run of 2 steps, more than 1" in fewer.stderr
