"""The command line: arguments in, a function called, a message out."""

import io
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

try:
    import typer

    from psal.cli.app import app as app_command
    from psal.cli.bench import bench
    from psal.cli.console import FAILED, complain, errors_as_messages, progress_bar, say
    from psal.cli.train import evaluate, train
except ImportError as missing:
    sys.exit(f"error: {missing.name} is missing, which the command line needs: pip install 'psal[edit]'")

from psal.version import __version__

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from psal.cli.jobs import Job
    from psal.io.photo import Photo as PhotoFile

LARGEST_SCALE = 4  # that of upscale, and the models of colorize, which are not imported for --help alone
COLOR_MODELS = ("patches", "network")

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Edit photographs with patches of the photograph itself or of another one; measure and train the attention.",
)
app.command("app")(app_command)
app.add_typer(bench, name="bench")
app.add_typer(train, name="train")
app.add_typer(evaluate, name="eval")


def _whole_number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise typer.BadParameter(f"{text} is not a whole number") from None


def _seed(text: str) -> int:
    from psal.seeds import check_seed

    seed = _whole_number(text)
    try:
        check_seed(seed)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    return seed


def _threads(text: str) -> int:
    threads = _whole_number(text)
    if threads < 1:
        raise typer.BadParameter(f"{threads} cores cannot do anything: give 1 or more")
    return threads


def _model(name: str) -> str:
    if name not in COLOR_MODELS:
        raise typer.BadParameter(f"{name} is not a model: give {' or '.join(COLOR_MODELS)}")
    return name


def _scale(text: str) -> float:
    try:
        scale = float(text)
    except ValueError:
        raise typer.BadParameter(f"{text} is not a number") from None
    if not scale > 1:
        raise typer.BadParameter(f"{scale:g} would not enlarge: give a number above 1")
    if scale > LARGEST_SCALE:
        raise typer.BadParameter(f"{scale:g} is too much: give a number up to {LARGEST_SCALE}")
    return scale


Photo = Annotated[Path, typer.Argument(help="a picture, or a folder of them", show_default=False)]
Mask = Annotated[
    Path,
    typer.Argument(help="white where the hole is: one for all, or a folder with the same names", show_default=False),
]
Reference = Annotated[
    Path, typer.Argument(help="one picture for all, or a folder with the same names", show_default=False)
]
Out = Annotated[
    str,  # a Path would drop the slash that makes a new name a folder
    typer.Option(
        "--out", "-o", metavar="<path>", help="file to write, or a folder (if new, with a / at its end)",
        show_default=False,
    ),
]  # fmt: skip
Seed = Annotated[int, typer.Option(parser=_seed, metavar="<int>", help="the same seed gives the same picture")]
Threads = Annotated[
    int | None,
    typer.Option(parser=_threads, metavar="<int>", help="how many cores to use; all if left out", show_default=False),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="write over what is there")]
Compare = Annotated[
    bool, typer.Option("--compare", help="also write before and after side by side, as OUT_compare.png")
]


@dataclass(frozen=True)
class Edited:
    """Pixels to write, the shifts if they were asked for, and why nothing was edited, if so."""

    pixels: "NDArray[Any]"
    shifts: "NDArray[Any] | None" = None
    unchanged: str = ""


# The job, pixels of the photo and of the mask or reference, and what to call with the share that is done.
Edit = Callable[["Job", Any, Any, Callable[[float], None]], Edited]


@app.command()
def inpaint(
    photo: Photo,
    mask: Mask,
    out: Out,
    seed: Seed = 0,
    threads: Threads = None,
    overwrite: Overwrite = False,
    compare: Compare = False,
) -> None:
    """Fill the hole that a mask marks: remove an object, a scratch, a text."""

    def edit(job: "Job", pixels: Any, mask_pixels: Any, progress: Callable[[float], None]) -> Edited:
        from psal.editing.inpaint import inpaint
        from psal.io.masks import open_mask

        hole = open_mask(mask_pixels, pixels.shape[:2], name=str(job.partner))
        if not hole.any():
            return Edited(pixels, unchanged="the mask has no white in it")
        return Edited(inpaint(pixels, hole.numpy(), seed=seed, progress=progress))

    _run(edit, photo, mask, "mask", out, threads=threads, overwrite=overwrite, compare=compare)


@app.command()
def colorize(
    photo: Photo,
    reference: Reference,
    out: Out,
    model: Annotated[
        str, typer.Option(callback=_model, help="patches (from coarse to fine), or network (the paper's, trained)")
    ] = "patches",
    seed: Seed = 0,
    threads: Threads = None,
    overwrite: Overwrite = False,
    compare: Compare = False,
) -> None:
    """Colour a grey photo with the colours of another one of the same scene or kind."""

    def edit(_: "Job", pixels: Any, reference_pixels: Any, progress: Callable[[float], None]) -> Edited:
        from psal.editing.colorize import colorize

        return Edited(colorize(pixels, reference_pixels, model=model, seed=seed, progress=progress))

    _run(edit, photo, reference, "reference", out, threads=threads, overwrite=overwrite, compare=compare)


@app.command()
def reconstruct(
    photo: Photo,
    reference: Reference,
    out: Out,
    shifts: Annotated[
        str | None,
        typer.Option(
            metavar="<path>",
            help="also write where each pixel came from, as colours; in a folder, as PNG",
            show_default=False,
        ),
    ] = None,
    seed: Seed = 0,
    threads: Threads = None,
    overwrite: Overwrite = False,
    compare: Compare = False,
) -> None:
    """Rebuild a photo from the pixels of another one."""

    def edit(_: "Job", pixels: Any, reference_pixels: Any, progress: Callable[[float], None]) -> Edited:
        from psal.editing.reconstruct import reconstruct

        if shifts is None:
            return Edited(reconstruct(pixels, reference_pixels, seed=seed, progress=progress))
        rebuilt, shift_picture = reconstruct(pixels, reference_pixels, seed=seed, progress=progress, return_shifts=True)
        return Edited(rebuilt, shift_picture)

    _run(
        edit, photo, reference, "reference", out,
        shifts=shifts, threads=threads, overwrite=overwrite, compare=compare,
    )  # fmt: skip


@app.command()
def upscale(
    photo: Photo,
    out: Out,
    scale: Annotated[
        float,
        typer.Option(
            parser=_scale, metavar="<float>", help=f"how many times as wide and as high, above 1, up to {LARGEST_SCALE}"
        ),
    ] = 2,
    seed: Seed = 0,
    threads: Threads = None,
    overwrite: Overwrite = False,
    compare: Compare = False,
) -> None:
    """Enlarge a photo, with detail that it shows elsewhere at another size."""

    def edit(_job: "Job", pixels: Any, _partner: Any, progress: Callable[[float], None]) -> Edited:
        from psal.editing.upscale import upscale

        return Edited(upscale(pixels, scale, seed=seed, progress=progress))

    _run(edit, photo, None, "", out, threads=threads, overwrite=overwrite, compare=compare)


@app.command()
def samples(
    folder: Annotated[Path, typer.Argument(help="where to put them")] = Path("samples"), overwrite: Overwrite = False
) -> None:
    """Write sample pictures with masks and references, and say what to try with them."""
    with errors_as_messages():
        from psal.data.samples import samples
        from psal.errors import UsageError
        from psal.io.atomic import check_folder_is_writable
        from psal.io.photo import Photo

        pictures: dict[str, NDArray[Any]] = {}
        commands = []
        for sample in samples():
            partners = {"mask": sample.mask, "reference": sample.reference}
            files = {f"{sample.name}.png": sample.picture}
            files |= {f"{sample.name}_{role}.png": pixels for role, pixels in partners.items() if pixels is not None}
            pictures |= files
            inputs = " ".join(_quoted(folder / name) for name in files)
            commands.append(f"psal {sample.name} {inputs} -o {_quoted(folder / f'{sample.name}_out.png')} --compare")
        if not overwrite and (there := [folder / name for name in pictures if (folder / name).exists()]):
            raise UsageError(f"{there[0]} is there already: add --overwrite to replace it, or choose another folder")
        check_folder_is_writable(folder)
        for name, pixels in pictures.items():
            Photo(pixels).save(folder / name)
        say(f"wrote {len(pictures)} pictures to {folder}; now try")
        for command in commands:
            say(f"  {command}")


def _run(
    edit: Edit,
    photo: Path,
    partner: Path | None,
    partner_name: str,
    out: str,
    *,
    threads: int | None,
    overwrite: bool,
    compare: bool,
    shifts: str | None = None,
) -> None:
    with errors_as_messages():
        from psal.cli.jobs import plan_jobs, run_jobs

        plan = plan_jobs(
            photo, partner, out, partner_name=partner_name, shifts=shifts, compare=compare, overwrite=overwrite
        )
        if threads is not None:
            import torch

            torch.set_num_threads(threads)
        with progress_bar(len(plan.jobs)) as (bar, task):

            def work(number: int, job: "Job") -> None:
                bar.update(task, description=job.photo.name, completed=number)
                note = _edit_file(edit, job, lambda share: bar.update(task, completed=number + share))
                written = ", ".join(map(str, job.extras.values())) if job.keeps_out else job.out
                say(f"wrote {written}" + (f" ({note})" if note else ""), bar)

            failures = plan.failures + run_jobs(plan.jobs, work)
        if photo.is_dir():
            done = len(plan.jobs) + len(plan.failures) - len(failures)
            say(f"{done} done, {plan.skipped} skipped as done before, {len(failures)} failed")
        for line in failures:
            complain(line)
        if failures:
            raise typer.Exit(FAILED)


def _edit_file(edit: Edit, job: "Job", progress: Callable[[float], None]) -> str:
    """Read, edit and write one picture; returns what there is to say."""
    from psal.cli.comparison import side_by_side
    from psal.io.formats import check_can_hold
    from psal.io.photo import Photo

    photo = Photo.open(job.photo)
    check_can_hold(job.out, photo.pixels)
    edited = Edited(photo.pixels)
    if not job.keeps_out or "shifts" in job.extras:
        partner = Photo.open(job.partner) if job.partner else None
        edited = edit(job, photo.pixels, partner.pixels if partner else None, progress)
    if job.keeps_out:
        edited = replace(edited, pixels=Photo.open(job.out).pixels)
        note = f"{job.out} stays as it was"
    else:
        note = _write_result(job, edited, photo)
    if "shifts" in job.extras and edited.shifts is not None:
        Photo(edited.shifts).save(job.extras["shifts"])
    if "compare" in job.extras:
        Photo(side_by_side(photo.pixels, edited.pixels)).save(job.extras["compare"])
    return note


def _write_result(job: "Job", edited: Edited, photo: "PhotoFile") -> str:
    """Write the picture itself; returns what there is to say."""
    from psal.io.atomic import write_atomically
    from psal.io.formats import loses_depth, output_format

    kind = output_format(job.out)
    if edited.unchanged and photo.format == kind:
        write_atomically(job.out, job.photo.read_bytes())
        return f"{edited.unchanged}, so the file is a copy"
    photo.with_pixels(edited.pixels).save(job.out)
    notes = [f"{edited.unchanged}, so only the format is new"] if edited.unchanged else []
    if loses_depth(job.out, edited.pixels):
        notes.append(f"8 bits a channel instead of 16, as {kind} has no more")
    return "; ".join(notes)


def _quoted(path: Path) -> str:
    import shlex

    return shlex.quote(str(path))


def _show_version(wanted: bool) -> None:
    if wanted:
        say(f"psal {__version__}")
        raise typer.Exit()


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="show the version")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a file's name need not be text
    app(prog_name="psal")


if __name__ == "__main__":
    main()
