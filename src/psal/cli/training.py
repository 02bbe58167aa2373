"""What the commands ``psal train …`` share: options, progress, estimates and what they say at the end."""

import functools
import inspect
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from psal.cli.console import complain, errors_as_messages, progress_bar, say
from psal.cli.options import Device, Threads
from psal.cli.torch_setup import set_up_torch
from psal.training.settings import Settings

if TYPE_CHECKING:
    from psal.training.task import Task

TIMED_STEPS = 10  # whose time is the estimate's; the first one, which warms up, is left out

Out = Annotated[Path, typer.Option("--out", "-o", help="folder of the run", show_default=False)]
SETTINGS: dict[str, Any] = {  # options by the field of Settings that they set
    "iterations": Annotated[int, typer.Option(min=1, help="optimizer steps in all")],
    "batch": Annotated[int, typer.Option(min=1, help="pictures per step and process")],
    "learning_rate": Annotated[float, typer.Option(min=0, help="of Adam")],
    "average": Annotated[int, typer.Option(min=1, help="steps over which the saved weights are averaged")],
    "seed": Annotated[int, typer.Option(min=0, max=2**30, help="of the weights, the pictures and the searches")],
    "precision": Annotated[Literal["32-true", "bf16-mixed", "64-true"], typer.Option(help="of the network")],
    "device": Device,
    "checkpoint_every": Annotated[int, typer.Option(min=1, help="steps that an interrupted run loses at most")],
}


def training_command(default: Settings) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Turn a function into a ``psal train`` command: it gets the options of all tasks besides its own.

    Args:
        default: defaults of the options in :data:`SETTINGS`.

    Returns:
        A decorator. The decorated function is called with its own options and ``settings``, a :class:`Settings`.
    """

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(function)
        def command(*, threads: int | None, **given: Any) -> None:
            with errors_as_messages("train"):
                settings = Settings(**{name: given.pop(name) for name in SETTINGS})
                set_up_torch(threads)
                function(**given, settings=settings)

        own = inspect.signature(function).parameters.values()
        shared = [_keyword(name, kind, getattr(default, name)) for name, kind in SETTINGS.items()]
        parameters = [
            *(_keyword(each.name, each.annotation, each.default) for each in own if each.name != "settings"),
            *shared,
            _keyword("threads", Threads, None),
        ]
        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        command.__annotations__ = {each.name: each.annotation for each in parameters}
        return command

    return decorate


def _keyword(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


def run_training(task: "Task", settings: Settings, out: Path, *, label: str, files: str) -> None:
    """Train a task, or resume its run, and report.

    Args:
        task: the task.
        settings: its hyperparameters.
        out: folder of the run.
        label: shown before the loss.
        files: what its examples are read from, such as "frame".
    """
    from psal.training.loop import train
    from psal.training.processes import is_first_process

    with progress_bar(settings.iterations, shown=is_first_process()) as (bar, bar_task):
        estimate = TimeEstimate(settings.iterations)

        def report(step: int, loss: float) -> None:
            bar.update(bar_task, completed=step, description=f"{label}, loss {loss:.5f}")
            if (line := estimate.after_step(step)) and is_first_process():
                say(line, bar)

        outcome = train(task, settings, out, report)
    if not is_first_process():
        return
    for line in outcome.complaints:
        complain(f"{line} (skipped)", prefix="warning: ")
    if count := len(outcome.complaints):
        complain(f"skipped 1 {files}" if count == 1 else f"skipped {count} {files}s", prefix="warning: ")
    resumed = f", resumed at step {outcome.resumed_from}" if outcome.resumed_from else ""
    pace = f", {outcome.seconds_per_step:.3g} s per step" if outcome.steps > outcome.resumed_from else ""
    say(f"{outcome.steps} steps{resumed}, loss {outcome.loss:.5f}{pace}; written to {out}")


class TimeEstimate:
    """How long a run will take, from the time of its first steps."""

    def __init__(self, iterations: int) -> None:
        self._iterations = iterations
        self._first: tuple[int, float] | None = None  # step and time

    def after_step(self, step: int) -> str | None:
        """Return a line with the estimate once, as soon as there is one, if the run takes a minute or more."""
        now = time.monotonic()
        if self._first is None:
            self._first = step, now
        if step != self._first[0] + TIMED_STEPS:
            return None
        seconds = (now - self._first[1]) / TIMED_STEPS
        left = seconds * (self._iterations - step)
        return f"{duration(left)} for {self._iterations - step} more steps at {seconds:.2g} s" if left >= 60 else None


def duration(seconds: float) -> str:
    """Return a time in its natural unit, rounded.

    >>> duration(400), duration(30_000), duration(500_000)
    ('about 7 minutes', 'about 8 hours', 'about 6 days')
    """
    for unit, length in (("days", 86_400), ("hours", 3600)):
        if seconds >= 2 * length:
            return f"about {seconds / length:.0f} {unit}"
    return f"about {max(seconds / 60, 1):.0f} minutes"
