"""Run a function in a fresh process, with JSON in and out, or keep a process that answers one line after the other."""

import contextlib
import importlib
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Self

import torch


def run_in_fresh_process(
    function: Callable[..., Any], *arguments: Any, threads: int | None = None, label: str | None = None
) -> Any:
    """Call ``function(*arguments)`` in a new Python process.

    Args:
        function: a function at the top level of a module that the new process can import, which ``__main__`` is not.
        arguments: positional arguments, as JSON can hold them.
        threads: size of torch's thread pool in the new process; None for as many threads as this process uses.
        label: name of the measurement in error messages; None for the function's name.

    Returns:
        The function's return value, after a round trip through JSON.

    Raises:
        ValueError: if the function is defined in ``__main__``.
        RuntimeError: if the process fails; the message has the last line of its error output.
    """
    if function.__module__ == "__main__":
        raise ValueError(f"{function.__name__} is defined in __main__: move it to a module that can be imported")
    request = {
        "module": function.__module__,
        "function": function.__name__,
        "arguments": arguments,
        "threads": threads or torch.get_num_threads(),
    }
    finished = subprocess.run(
        [sys.executable, "-m", "psal.measure.process"], input=json.dumps(request), capture_output=True, text=True
    )
    if finished.returncode:
        last = (finished.stderr.strip().splitlines() or [f"exit code {finished.returncode}"])[-1]
        raise RuntimeError(f"{label or function.__name__} failed: {last}")
    return json.loads(finished.stdout)


class LineServer:
    """A process that answers each line of its standard input with a line, for builds that cannot share a process.

    Args:
        command: the program and its arguments.
        options: further arguments of :class:`subprocess.Popen`, such as ``env``.
    """

    def __init__(self, command: Sequence[str], **options: Any) -> None:
        self._process: subprocess.Popen[str] = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **options
        )

    def ask(self, line: str) -> str:
        """Send a line and wait for the answer.

        Raises:
            RuntimeError: if the process ended; it has printed why.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"no answer to {line}: see the error above")
        return answer.strip()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.communicate()


def main() -> None:
    """Read a request from standard input and print the function's return value as JSON."""
    request = json.load(sys.stdin)
    with contextlib.redirect_stdout(sys.stderr):  # standard output is for the result alone
        torch.set_num_threads(request["threads"])
        function = getattr(importlib.import_module(request["module"]), request["function"])
        result = function(*request["arguments"])
    print(json.dumps(result))


if __name__ == "__main__":
    main()
