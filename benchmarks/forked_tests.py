"""Run pytest many times, each time in a fork of one process that has imported the libraries.

As a script it is that process: each line that it reads is a list of pytest's arguments as JSON, each line that it
writes is how the run ended. It never imports psal, so every fork imports the sources as they are at that time.
"""

import importlib
import json
import os
import resource
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

# A run that takes longer hangs. CPU time, so that a busy machine does not make one hang; a run that waits for ever
# takes none, hence the second limit.
MAX_CPU_SECONDS = 600
MAX_SECONDS = 3600
HANGS = (signal.SIGXCPU, signal.SIGALRM)
LIBRARIES = ("hypothesis", "imagecodecs", "lightning_fabric", "PIL.Image", "rich", "scipy.ndimage", "skimage.data",
    "tensorboard", "tifffile", "torch", "torchmetrics", "typer")  # fmt: skip


@dataclass(frozen=True)
class Run:
    """How a run of pytest ended.

    Attributes:
        exit_code: of pytest, or minus the number of the signal that ended it.
        first_failure: the test that failed first, None if all passed.
        seconds: by file of tests.
    """

    exit_code: int
    first_failure: str | None
    seconds: dict[str, float]


class ForkedTests:
    """A process that runs tests in a folder with its own ``src``; for a ``with`` block."""

    def __init__(self, folder: Path) -> None:
        environment = os.environ | {
            "PYTHONPATH": str(folder / "src"), "OMP_WAIT_POLICY": "PASSIVE", "OMP_NUM_THREADS": "2",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        }  # fmt: skip
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=folder,
            env=environment,
        )  # fmt: skip

    def __enter__(self) -> "ForkedTests":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def run(self, arguments: Sequence[str]) -> Run:
        """Run pytest until a test fails."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(["-x", "-q", "-p", "no:cacheprovider", *arguments]) + "\n")
        self._process.stdin.flush()
        return Run(**json.loads(self._process.stdout.readline()))


class _Report:
    """A pytest plugin that notes the first failure and the time of each file."""

    def __init__(self) -> None:
        self.first_failure: str | None = None
        self.seconds: dict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid.partition("::")[0]] += report.duration
        if report.failed:
            self.first_failure = self.first_failure or report.nodeid

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.first_failure = self.first_failure or f"collecting {report.nodeid}"


def _run_in_this_process(arguments: list[str], answer: int) -> None:
    """Run pytest quietly, and write the report to a file descriptor."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nothing, standard)
    os.setsid()
    signal.alarm(MAX_SECONDS)
    resource.setrlimit(resource.RLIMIT_CPU, (MAX_CPU_SECONDS, MAX_CPU_SECONDS + 5))
    report = _Report()
    code = pytest.main(arguments, plugins=[report])
    content = {"exit_code": int(code), "first_failure": report.first_failure, "seconds": report.seconds}
    os.write(answer, json.dumps(content).encode())
    os._exit(0)


def _fork(arguments: list[str]) -> str:
    """Run pytest in a fork; return the report as a line."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        _run_in_this_process(arguments, writing)
    os.close(writing)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # processes that its tests started
    with open(reading) as pipe:
        return pipe.read() or json.dumps({"exit_code": code, "first_failure": None, "seconds": {}})


def main() -> None:
    """Answer every line of the input with a line."""
    for name in LIBRARIES:
        importlib.import_module(name)
    for line in sys.stdin:
        print(_fork(json.loads(line)), flush=True)


if __name__ == "__main__":
    main()
