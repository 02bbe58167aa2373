"""The commands ``psal train upscale`` and ``psal eval upscale``."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from psal.cli.console import errors_as_messages, progress_bar, say
from psal.cli.options import Threads
from psal.cli.torch_setup import set_up_torch
from psal.cli.training import Out, run_training, training_command
from psal.training.settings import Settings

Scale = Annotated[Literal["2", "3", "4"], typer.Option(help="factor per side")]


@training_command(Settings(iterations=200_000, batch=4, learning_rate=0.0002, device="auto"))
def train_upscale(
    data: Annotated[Path, typer.Option(help="folder of photographs", show_default=False)],
    out: Out,
    settings: Settings,
    scale: Scale = "2",
    width: Annotated[int, typer.Option(min=2, help="channels; 128 in the published networks")] = 64,
    depth: Annotated[int, typer.Option(min=1, help="recurrences; 12 in the published networks")] = 5,
    cross_scale: Annotated[str, typer.Option(help="exact, psalN, randomN, localN or none")] = "exact",
    in_scale: Annotated[str, typer.Option(help="exact or localN")] = "local15",
    residual: Annotated[
        bool, typer.Option(help="learn the difference to bicubic enlargement, which the published networks do not")
    ] = True,
    size: Annotated[int, typer.Option(min=16, help="side of the small crops in pixels")] = 48,
    start: Annotated[Path | None, typer.Option(help="run or file of weights to start from", show_default=False)] = None,
) -> None:
    """Enlarge photographs that were downscaled: the network with cross-scale attention."""
    from psal.training.loop import weights_of
    from psal.training.upscale import Architecture, UpscaleTask

    architecture = Architecture(int(scale), width, depth, cross_scale, in_scale, residual)
    task = UpscaleTask(data, architecture, size, settings.seed, start and weights_of(start))
    run_training(task, settings, out, label=f"× {scale}, {cross_scale}", files="photograph")


def evaluate_upscale(
    run: Annotated[Path, typer.Argument(help="folder of a run, or a file of weights", show_default=False)],
    data: Annotated[Path, typer.Option(help="folder of test pictures", show_default=False)],
    cross_scale: Annotated[
        str | None, typer.Option(help="another cross-scale attention with the same weights", show_default=False)
    ] = None,
    in_scale: Annotated[
        str | None, typer.Option(help="another in-scale attention with the same weights", show_default=False)
    ] = None,
    crop: Annotated[
        int | None, typer.Option(min=16, help="side of a small crop; whole pictures by default", show_default=False)
    ] = None,
    each: Annotated[bool, typer.Option("--each", help="also print every picture's own values")] = False,
    threads: Threads = None,
) -> None:
    """Print PSNR and SSIM of enlarged test pictures, beside those of bicubic interpolation."""
    with errors_as_messages("train"):
        import statistics

        import torch

        from psal.data.image_folder import list_pictures
        from psal.models.csnln.weights import load_upscaler
        from psal.training.loop import weights_of
        from psal.training.upscale import bicubic, load_pair, quality

        set_up_torch(threads)
        network = load_upscaler(weights_of(run), cross_scale=cross_scale, in_scale=in_scale, seed=0)
        files = list_pictures(data)
        found = []
        with progress_bar(len(files)) as (bar, task):
            for count, path in enumerate(files):
                bar.update(task, completed=count, description=path.name)
                small, original = load_pair(path, network.scale, crop)
                with torch.no_grad():
                    enlarged = network(small[None])[0]
                pair = (
                    quality(enlarged, original, network.scale),
                    quality(bicubic(small, network.scale), original, network.scale),
                )
                found.append(pair)
                if each:
                    say(f"{path.stem}: {pair[0].psnr:.2f} dB, SSIM {pair[0].ssim:.4f}", bar)
        for label, results in zip(("network", "bicubic"), zip(*found, strict=True), strict=True):
            psnr, ssim = (statistics.fmean(values) for values in zip(*results, strict=True))
            say(f"{label} {psnr:.3f} dB, SSIM {ssim:.4f}")
