"""Time and peak memory of one edit, in a process of its own."""

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch

import psal


class Measured(NamedTuple):
    """From the files to the picture in memory."""

    seconds: float
    peak: float  # bytes, all of the process


def measure_in_fresh_process(function: str, files: Sequence[Path]) -> Measured:
    """Run psal.<function>(*files, seed=0) in a fresh process, on as many threads as this one uses."""
    command = [sys.executable, "-m", "psal.measure.fresh_process", function, *map(str, files)]
    command += ["--threads", str(torch.get_num_threads())]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"measuring {function} failed:\n{done.stderr}")
    return Measured(**json.loads(done.stdout))


def main() -> None:
    """Print one measurement as JSON; :func:`measure_in_fresh_process` runs this."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("function")
    parser.add_argument("files", nargs="+")
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    function = getattr(psal, arguments.function)
    start = time.perf_counter()
    function(*arguments.files, seed=0)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024  # Linux counts in kilobytes
    print(json.dumps({"seconds": seconds, "peak": peak}))


if __name__ == "__main__":
    main()
