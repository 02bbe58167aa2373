"""Training runs, and what they wrote."""

import csv
import subprocess
import sys
from pathlib import Path
from typing import Any

from safetensors.torch import load_file

from support.tolerances import assert_same_bits

SIZE = 20
OPTIONS = ("--size", SIZE, "--threads", 1)  # of every run


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
