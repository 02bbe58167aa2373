"""The commands that edit photographs, one for each entry of :data:`psal.editing.registry.EDITS`."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from psal.cli.console import FAILED, complain, errors_as_messages, progress_bar, say
from psal.cli.jobs import Job, Paths, plan_jobs, run_jobs
from psal.cli.options import Overwrite, Seed, Threads
from psal.editing.registry import EDITS, Edit, Option
from psal.errors import UsageError
from psal.progress import Progress
from psal.seeds import check_seed

if TYPE_CHECKING:
    from psal.io.photo import Photo

PhotoPath = Annotated[Path, typer.Argument(help="a picture, or a folder of them", show_default=False)]
PARTNER_PATH = {
    "mask": Annotated[
        Path,
        typer.Argument(help="white where the hole is: one for all, or a folder with the same names"),
    ],
    "reference": Annotated[Path, typer.Argument(help="one picture for all, or a folder with the same names")],
}
OutPath = Annotated[
    str,  # a Path would drop the trailing slash that makes a new name a folder
    typer.Option("--out", "-o", metavar="<path>", help="file to write, or a folder (if new, with a trailing /)"),
]
ShiftsPath = Annotated[
    str | None,
    typer.Option(
        metavar="<path>",
        help="also write where each pixel came from, as colors; in a folder, as PNG",
        show_default=False,
    ),
]
Compare = Annotated[
    bool, typer.Option("--compare", help="also write before and after side by side, as OUT_compare.png")
]


@dataclass(frozen=True)
class Request:
    """One call of an edit command.

    Attributes:
        edit: the edit to run.
        paths: files to read and write.
        options: keyword arguments of the edit's function, the seed among them.
        threads: CPU threads; None for all cores.
    """

    edit: Edit
    paths: Paths
    options: dict[str, Any]
    threads: int | None


def add_edit_commands(app: typer.Typer) -> None:
    """Add a command for every edit."""
    for edit in EDITS.values():
        app.command(edit.name, help=edit.summary)(_command(edit))


def _command(edit: Edit) -> Callable[..., None]:
    """Build the function that typer reads a command's arguments from."""
    required: dict[str, Any] = {"photo": PhotoPath}
    if edit.partner:
        required[edit.partner] = PARTNER_PATH[edit.partner]
    required["out"] = OutPath
    optional: dict[str, tuple[Any, Any]] = {
        option.name: (_annotation(option), option.default) for option in edit.options
    }
    if edit.returns_shifts:
        optional["shifts"] = ShiftsPath, None
    optional |= {
        "seed": (Seed, 0), "threads": (Threads, None), "overwrite": (Overwrite, False), "compare": (Compare, False),
    }  # fmt: skip

    def command(**given: Any) -> None:
        paths = Paths(
            given["photo"], given[edit.partner] if edit.partner else None, given["out"],
            partner_name=edit.partner or "", shifts=given.get("shifts"), compare=given["compare"],
            overwrite=given["overwrite"],
        )  # fmt: skip
        options = {name: given[name] for name in ("seed", *(option.name for option in edit.options))}
        _run(Request(edit, paths, options, given["threads"]))

    parameters = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind) for name, kind in required.items()
    ]
    parameters += [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=default)
        for name, (kind, default) in optional.items()
    ]
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command


def _annotation(option: Option) -> Any:
    if option.choices:
        return Annotated[Literal[option.choices], typer.Option(help=option.help)]
    if option.is_path:
        return Annotated[Path | None, typer.Option(help=option.help, show_default=False)]

    def above_minimum(value: float) -> float:
        if option.minimum is not None and value <= option.minimum:
            raise typer.BadParameter(f"{value:g} is not above {option.minimum:g}")
        return value

    return Annotated[float, typer.Option(callback=above_minimum, max=option.maximum, help=option.help)]


def _run(request: Request) -> None:
    """Edit one photo or a folder of them; exit with 1 if any failed."""
    with errors_as_messages():
        _check_seed(request.options["seed"])
        plan = plan_jobs(request.paths)
        if request.threads is not None:
            import torch

            torch.set_num_threads(request.threads)
        with progress_bar(len(plan.jobs)) as (bar, task):

            def work(count: int, job: Job) -> None:
                bar.update(task, description=job.photo.name, completed=count)
                note = _edit_file(request, job, lambda share: bar.update(task, completed=count + share))
                written = ", ".join(map(str, job.extras.values())) if job.keeps_out else job.out
                say(f"wrote {written}" + (f" ({note})" if note else ""), bar)

            failures = plan.failures + run_jobs(plan.jobs, work)
        if request.paths.photo.is_dir():
            done = len(plan.jobs) + len(plan.failures) - len(failures)
            say(f"{done} done, {plan.skipped} skipped (they exist), {len(failures)} failed")
        for line in failures:
            complain(line)
        if failures:
            raise typer.Exit(FAILED)


def _check_seed(seed: int) -> None:
    try:
        check_seed(seed)
    except ValueError as error:
        raise UsageError(str(error)) from None


def _edit_file(request: Request, job: Job, progress: Progress) -> str:
    """Read, edit and write one photo; return a note for the user, or an empty string."""
    from psal.cli.comparison import side_by_side
    from psal.io.formats import check_can_hold
    from psal.io.photo import Photo

    photo = Photo.open(job.photo)
    check_can_hold(job.out, photo.pixels)  # before the work
    edited, shifts, note = photo, None, ""
    if not job.keeps_out or "shifts" in job.extras:
        edited, shifts, note = _edit(request, job, photo, progress)
    if job.keeps_out:
        edited, note = Photo.open(job.out), f"{job.out} is kept as it was"
    else:
        note = _save(job, photo, edited, note)
    if "shifts" in job.extras and shifts is not None:
        shifts.save(job.extras["shifts"])
    if "compare" in job.extras:
        Photo(side_by_side(photo.pixels, edited.pixels)).save(job.extras["compare"])
    return note


def _edit(request: Request, job: Job, photo: "Photo", progress: Progress) -> "tuple[Photo, Photo | None, str]":
    """Run the edit on a photo.

    Returns:
        The result, the shifts if they are to be written, and the reason if there was nothing to edit.
    """
    from psal.io.masks import open_mask
    from psal.io.photo import Photo

    partner: Any = Photo.open(job.partner).pixels if job.partner else None
    if request.edit.partner == "mask":
        partner = open_mask(partner, photo.pixels.shape[:2], name=str(job.partner)).numpy()
        if not partner.any():
            return photo, None, "the mask has no white in it"
    pictures = [photo.pixels] if partner is None else [photo.pixels, partner]
    options = request.options | ({"return_shifts": True} if "shifts" in job.extras else {})
    result = request.edit.function(*pictures, **options, progress=progress)
    if "shifts" in job.extras:
        return photo.with_pixels(result[0]), Photo(result[1]), ""
    return photo.with_pixels(result), None, ""


def _save(job: Job, photo: "Photo", edited: "Photo", unchanged: str) -> str:
    """Write the result; return a note for the user, or an empty string.

    Args:
        job: names the file.
        photo: the photo before the edit.
        edited: the photo after it.
        unchanged: reason if there was nothing to edit, else empty.
    """
    from psal.io.atomic import write_atomically
    from psal.io.formats import loses_depth, output_format

    kind = output_format(job.out)
    if unchanged and photo.format == kind:
        write_atomically(job.out, job.photo.read_bytes())
        return f"{unchanged}: copied"
    edited.save(job.out)
    notes = [f"{unchanged}: converted only"] if unchanged else []
    if loses_depth(job.out, edited.pixels):
        notes.append(f"8 bits per channel: {kind} has no 16")
    return "; ".join(notes)
