"""The commands ``psal train …`` and ``psal eval …``."""

from pathlib import Path
from typing import Annotated

import typer

from psal.console import complain, errors_as_messages, progress_bar, say

train = typer.Typer(no_args_is_help=True, help="Train a network through an attention layer. A stopped run goes on.")

PRECISIONS = ("32-true", "bf16-mixed", "64-true")


def _known_precision(name: str) -> str:
    if name not in PRECISIONS:
        raise typer.BadParameter(f"{name!r} is not a precision: give one of {', '.join(PRECISIONS)}")
    return name


Data = Annotated[Path, typer.Option(help="DAVIS's folder", show_default=False)]


@train.command("colorize")
def train_colorize(
    data: Data,
    out: Annotated[Path, typer.Option("--out", "-o", help="folder of the run", show_default=False)],
    attention: Annotated[str, typer.Option(help="psal3, psal-aggregate, full, full-stride3, local, …")] = "psal3",
    size: Annotated[int, typer.Option(min=16, help="side of the pictures")] = 256,
    iterations: Annotated[int, typer.Option(min=1, help="steps in all")] = 200_000,
    batch: Annotated[int, typer.Option(min=1, help="pictures a step and process")] = 1,
    learning_rate: Annotated[float, typer.Option(min=0, help="of Adam")] = 0.001,
    seed: Annotated[int, typer.Option(min=0, max=2**30, help="of the weights, the pictures and the searches")] = 0,
    precision: Annotated[str, typer.Option(callback=_known_precision, help=" or ".join(PRECISIONS))] = "32-true",
    device: Annotated[str, typer.Option(help="cpu or cuda")] = "cpu",
    checkpoint_every: Annotated[int, typer.Option(min=1, help="steps that a killed run loses at most")] = 500,
    threads: Annotated[int | None, typer.Option(min=1, help="of the CPU; all if left out", show_default=False)] = None,
) -> None:
    """Colour a grey frame from another frame of its video: the paper's network, on DAVIS."""
    with errors_as_messages("train"):
        import torch

        from psal.attentions import check_name
        from psal.training.colorize import ColorizeTask
        from psal.training.loop import Settings
        from psal.training.loop import train as run

        check_name(attention)
        if threads is not None:
            torch.set_num_threads(threads)
        settings = Settings(
            iterations=iterations, batch=batch, learning_rate=learning_rate, seed=seed, precision=precision,
            device=device, checkpoint_every=checkpoint_every,
        )  # fmt: skip
        task = ColorizeTask(data, attention, size, seed)
        with progress_bar(iterations) as (bar, bar_task):
            outcome = run(
                task, settings, out,
                lambda step, loss: bar.update(bar_task, completed=step, description=f"{attention}, loss {loss:.5f}"),
            )  # fmt: skip
        for line in outcome.complaints:
            complain(f"{line} (left out)", prefix="warning: ")
        if outcome.complaints:
            complain(f"{len(outcome.complaints)} frames were left out", prefix="warning: ")
        begun = f", {outcome.resumed_from} of them before" if outcome.resumed_from else ""
        say(f"{outcome.steps} steps{begun}, loss {outcome.loss:.5f}; written to {out}")
