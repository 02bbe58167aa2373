"""What the commands say on the terminal: messages, errors in one line, and progress."""

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import TextIO

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeRemainingColumn

FAILED, WRONG_USAGE, STOPPED = 1, 2, 130


@contextlib.contextmanager
def errors_as_messages(extra: str = "edit") -> Iterator[None]:
    """One line for people and an exit code; never a traceback.

    Args:
        extra: of the package, with what the command needs.
    """
    try:
        yield
    except typer.Exit:
        raise
    except KeyboardInterrupt:
        complain("stopped", prefix="")
        raise typer.Exit(STOPPED) from None
    except ImportError as error:
        complain(f"{error.name or error} is missing: pip install 'psal[{extra}]'")
        raise typer.Exit(FAILED) from None
    except Exception as error:
        from psal.errors import UsageError
        from psal.messages import describe

        complain(describe(error))
        raise typer.Exit(WRONG_USAGE if isinstance(error, UsageError) else FAILED) from None


@contextlib.contextmanager
def progress_bar(total: int, shown: bool = True) -> Iterator[tuple[Progress, TaskID]]:
    """A bar with the time left; nothing where nobody looks, or if it is not to be shown."""
    console = Console(stderr=True)
    columns = TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn(), TimeRemainingColumn()
    shown = shown and console.is_terminal
    with Progress(*columns, console=console, disable=not shown, transient=True, redirect_stdout=False) as bar:
        yield bar, bar.add_task("", total=total)


def say(line: str, bar: Progress | None = None) -> None:
    """Print a line, above the bar if there is one."""
    if bar is not None and not bar.disable and sys.stdout.isatty():
        bar.console.print(line, soft_wrap=True, markup=False, highlight=False)
    else:
        _print(line, sys.stdout)


def complain(line: str, prefix: str = "error: ") -> None:
    """Print a line where errors go."""
    _print(f"{prefix}{line}", sys.stderr)


def _print(line: str, stream: TextIO) -> None:
    """Print a line, if anybody listens: the pictures matter, not what is said of them."""
    try:
        print(line, file=stream, flush=True)
    except BrokenPipeError:
        with open(os.devnull, "w") as nowhere:  # or Python would try again at its end, and complain
            os.dup2(nowhere.fileno(), stream.fileno())
