"""Training runs in processes of their own, and what they wrote."""

import csv
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from safetensors.torch import load_file

from support.tolerances import assert_same_bits

COMMAND = (sys.executable, "-m", "psal.cli", "train", "colorize")
SIZE = 20


def train(data: Path, out: Path, *options: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run ``psal train colorize`` on one thread."""
    command = [*COMMAND, "--data", data, "--out", out, "--size", SIZE, "--threads", 1, *options]
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, timeout=300, check=False, env=os.environ | environment
    )
    assert "Traceback" not in done.stderr
    return done


def on_two_processes(*command: object) -> subprocess.CompletedProcess[str]:
    """Run a Python command under torchrun."""
    torchrun = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    return subprocess.run(
        list(map(str, [*torchrun, *command])), capture_output=True, text=True, timeout=300, check=False
    )


def frame(davis: Path, sequence: str, number: int) -> Path:
    """File of a frame."""
    return davis / "JPEGImages" / "480p" / sequence / f"{number:05d}.jpg"


def weights(run: Path) -> dict[str, Any]:
    """Weights that a run wrote."""
    return load_file(run / "model.safetensors")


def losses(run: Path) -> list[tuple[str, str]]:
    """Steps and losses that a run logged."""
    with (run / "log.csv").open() as file:
        return [(row["step"], row["loss"]) for row in csv.DictReader(file)]


def assert_same_weights(run: Path, expected: Path) -> None:
    found, wanted = weights(run), weights(expected)
    assert found.keys() == wanted.keys()
    for name in wanted:
        assert_same_bits(found[name], wanted[name])
