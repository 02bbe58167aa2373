"""The commands ``psal train colorize`` and ``psal eval colorize``."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from psal.cli.console import errors_as_messages, say
from psal.cli.options import Device, Threads
from psal.cli.torch_setup import set_up_torch
from psal.cli.training import Out, run_training, training_command
from psal.training.settings import Settings

Data = Annotated[Path, typer.Option(help="folder of the DAVIS data set", show_default=False)]


@training_command(Settings(iterations=200_000, batch=1, learning_rate=0.001, device="auto"))
def train_colorize(
    data: Data,
    out: Out,
    settings: Settings,
    attention: Annotated[str, typer.Option(help="psal3, psal-aggregate, full, full-stride3, local, …")] = "psal3",
    size: Annotated[int, typer.Option(min=16, help="side of the pictures in pixels")] = 256,
) -> None:
    """Color a gray frame from another frame of its video: the paper's network, on DAVIS."""
    from psal.models.attentions import check_name
    from psal.training.colorize import ColorizeTask

    check_name(attention)
    task = ColorizeTask(data, attention, size, settings.seed)
    run_training(task, settings, out, label=attention, files="frame")


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

        from psal.models.attentions import build_attention
        from psal.models.colorizer import CHANNELS
        from psal.models.colorizer_weights import PATCH_SIZE, load_colorizer
        from psal.swap import swap_attention_
        from psal.training.colorize import errors_on_split
        from psal.training.loop import weights_of

        set_up_torch(threads)
        network, settings = load_colorizer(weights_of(run))
        if attention is not None:
            swap_attention_(network, build_attention(attention, channels=CHANNELS, patch_size=PATCH_SIZE))
        errors = errors_on_split(network.to(device), data, split, size or int(settings["size"]), device)
        for distance, found in errors.items():
            say(f"±{distance:<3} {statistics.fmean(found):.5f}")
        say(f"mean {statistics.fmean(x for found in errors.values() for x in found):.5f}")
