"""The commands ``psal train …`` and ``psal eval …``."""

import time
from pathlib import Path
from typing import Annotated, Literal

import typer

from psal.cli.console import complain, errors_as_messages, progress_bar, say
from psal.cli.options import Device, Threads

evaluate = typer.Typer(no_args_is_help=True, help="Measure a trained network.")
train = typer.Typer(
    no_args_is_help=True, help="Train a network through an attention layer. The same command resumes a run."
)

TIMED_STEPS = 10  # whose time is the estimate's; the first one, which warms up, is left out

Data = Annotated[Path, typer.Option(help="folder of the DAVIS data set", show_default=False)]


@train.command("colorize")
def train_colorize(
    data: Data,
    out: Annotated[Path, typer.Option("--out", "-o", help="folder of the run", show_default=False)],
    attention: Annotated[str, typer.Option(help="psal3, psal-aggregate, full, full-stride3, local, …")] = "psal3",
    size: Annotated[int, typer.Option(min=16, help="side of the pictures in pixels")] = 256,
    iterations: Annotated[int, typer.Option(min=1, help="optimizer steps in all")] = 200_000,
    batch: Annotated[int, typer.Option(min=1, help="pictures per step and process")] = 1,
    learning_rate: Annotated[float, typer.Option(min=0, help="of Adam")] = 0.001,
    average: Annotated[int, typer.Option(min=1, help="steps over which the saved weights are averaged")] = 1000,
    seed: Annotated[int, typer.Option(min=0, max=2**30, help="of the weights, the pictures and the searches")] = 0,
    precision: Annotated[Literal["32-true", "bf16-mixed", "64-true"], typer.Option(help="of the network")] = "32-true",
    device: Device = "auto",
    checkpoint_every: Annotated[int, typer.Option(min=1, help="steps that an interrupted run loses at most")] = 500,
    threads: Threads = None,
) -> None:
    """Color a gray frame from another frame of its video: the paper's network, on DAVIS."""
    with errors_as_messages("train"):
        import torch

        from psal.models.attentions import check_name
        from psal.training.colorize import ColorizeTask
        from psal.training.loop import Settings
        from psal.training.loop import train as run
        from psal.training.processes import is_first_process

        check_name(attention)
        torch.set_flush_denormal(True)  # denormal weights make matrix products ten times slower
        if threads is not None:
            torch.set_num_threads(threads)
        settings = Settings(
            iterations=iterations, batch=batch, learning_rate=learning_rate, average=average, seed=seed,
            precision=precision, device=device, checkpoint_every=checkpoint_every,
        )  # fmt: skip
        task = ColorizeTask(data, attention, size, seed)
        with progress_bar(iterations, shown=is_first_process()) as (bar, bar_task):
            estimate = TimeEstimate(iterations)

            def report(step: int, loss: float) -> None:
                bar.update(bar_task, completed=step, description=f"{attention}, loss {loss:.5f}")
                if (line := estimate.after_step(step)) and is_first_process():
                    say(line, bar)

            outcome = run(task, settings, out, report)
        if not is_first_process():
            return
        for line in outcome.complaints:
            complain(f"{line} (skipped)", prefix="warning: ")
        if count := len(outcome.complaints):
            complain("skipped 1 frame" if count == 1 else f"skipped {count} frames", prefix="warning: ")
        resumed = f", resumed at step {outcome.resumed_from}" if outcome.resumed_from else ""
        pace = f", {outcome.seconds_per_step:.3g} s per step" if outcome.steps > outcome.resumed_from else ""
        say(f"{outcome.steps} steps{resumed}, loss {outcome.loss:.5f}{pace}; written to {out}")


@evaluate.command("colorize")
def evaluate_colorize(
    run: Annotated[Path, typer.Argument(help="folder of a run, or its model.safetensors", show_default=False)],
    data: Data,
    attention: Annotated[
        str | None, typer.Option(help="swap this in for the layer it was trained with", show_default=False)
    ] = None,
    size: Annotated[
        int | None, typer.Option(min=16, help="side of the pictures; as in training by default", show_default=False)
    ] = None,
    split: Annotated[
        Literal["val", "holdout"], typer.Option(help="sequences; holdout: the last two of DAVIS's train split")
    ] = "val",
    device: Device = "auto",
    threads: Threads = None,
) -> None:
    """Print the error of a colorization network on unseen sequences, by the distance to the reference frame."""
    with errors_as_messages("train"):
        import statistics

        import torch

        from psal.models.attentions import build_attention
        from psal.models.colorizer import CHANNELS
        from psal.models.weights import PATCH_SIZE, load_colorizer
        from psal.swap import swap_attention_
        from psal.training.colorize import errors_on_split
        from psal.training.loop import WEIGHTS

        if threads is not None:
            torch.set_num_threads(threads)
        network, settings = load_colorizer(run / WEIGHTS if run.is_dir() else run)
        if attention is not None:
            swap_attention_(network, build_attention(attention, channels=CHANNELS, patch_size=PATCH_SIZE))
        errors = errors_on_split(network.to(device), data, split, size or int(settings["size"]), device)
        for distance, found in errors.items():
            say(f"±{distance:<3} {statistics.fmean(found):.5f}")
        say(f"mean {statistics.fmean(x for found in errors.values() for x in found):.5f}")


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
