"""Terminal output of the commands: messages, errors in one line, progress bars."""

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import TextIO

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeRemainingColumn

FAILED, WRONG_USAGE, NOTHING_TO_EDIT, INTERRUPTED = 1, 2, 3, 130  # exit codes


@contextlib.contextmanager
def errors_as_messages(extra: str = "edit") -> Iterator[None]:
    """Turn exceptions into one line for the user and an exit code; never a traceback.

    Args:
        extra: the package's extra that has the command's dependencies, named if one is missing.
    """
    try:
        yield
    except typer.Exit:
        raise
    except KeyboardInterrupt:
        complain("interrupted", prefix="")
        raise typer.Exit(INTERRUPTED) from None
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
    """Show a bar with the time left, on a terminal only."""
    console = Console(stderr=True)
    columns = TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn(), TimeRemainingColumn()
    shown = shown and console.is_terminal
    with Progress(*columns, console=console, disable=not shown, transient=True, redirect_stdout=False) as bar:
        yield bar, bar.add_task("", total=total)


def say(line: str, bar: Progress | None = None) -> None:
    """Print a line to standard output, above the bar if there is one."""
    if bar is not None and not bar.disable and sys.stdout.isatty():
        bar.console.print(line, soft_wrap=True, markup=False, highlight=False)
    else:
        _print(line, sys.stdout)


def complain(line: str, prefix: str = "error: ") -> None:
    """Print a line to standard error."""
    _print(f"{prefix}{line}", sys.stderr)


def _print(line: str, stream: TextIO) -> None:
    """Print a line; a closed pipe is no error, because the files are written all the same."""
    try:
        print(line, file=stream, flush=True)
    except BrokenPipeError:
        with open(os.devnull, "w") as devnull:  # otherwise Python flushes again at exit, and complains
            os.dup2(devnull.fileno(), stream.fileno())
