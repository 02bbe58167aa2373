from functools import partial
from pathlib import Path

import pytest
from support.commands import Run
from support.frames import write_davis
from support.training_runs import OPTIONS


@pytest.fixture
def davis(tmp_path: Path) -> Path:
    """A data set with three sequences for training, two held out, and one for previews."""
    trained = {"bear": ("train", 4), "cat": ("train", 3), "dog": ("train", 5)}
    sequences = trained | {"eel": ("train", 2), "fox": ("train", 2), "swan": ("val", 13)}
    return write_davis(tmp_path / "DAVIS", sequences)


@pytest.fixture
def train(run_here: Run, davis: Path) -> Run:
    """``psal train colorize`` in this process, on one thread: ``train(out, *options)``."""
    return partial(run_here, "train", "colorize", *OPTIONS, "--data", davis, "--out")
