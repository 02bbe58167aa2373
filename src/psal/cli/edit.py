"""The commands that edit photographs, one for each entry of :data:`psal.editing.registry.EDITS`."""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from psal.cli.console import FAILED, NOTHING_TO_EDIT, complain, errors_as_messages, progress_bar, say
from psal.cli.edit_file import Request, edit_file, partner_names
from psal.cli.jobs import Job, Paths, plan_jobs, run_jobs
from psal.cli.lengths import check_length
from psal.cli.options import AUTO_HELP, DeviceName, Overwrite, Seed, Threads
from psal.editing.registry import EDITS, SHIFT_MAP_SUFFIX, Companion, Edit, Option
from psal.errors import UsageError

PhotoPath = Annotated[Path, typer.Argument(help="a picture, or a folder of them", show_default=False)]
PARTNER_PATH = {
    "mask": Annotated[
        Path | None,  # --alpha can take its place
        typer.Argument(help="white where the hole is: one for all, or a folder with the same names"),
    ],
    "reference": Annotated[Path, typer.Argument(help="one picture for all, or a folder with the same names")],
}
SEVERAL_PATHS = Annotated[
    list[Path], typer.Argument(help="one picture for all, or a folder with the same names; several are used together")
]
OutPath = Annotated[
    str,  # a Path would drop the trailing slash that makes a new name a folder
    typer.Option("--out", "-o", metavar="<path>", help="file to write, or a folder"),
]
EXTEND = "25%"
Extend = Annotated[
    str, typer.Option(callback=lambda text: _length(text), help="pixels or percent to add on all sides not given")
]
SHIFTS_HELP = {
    "picture": "also write where each pixel came from, as colors; in a folder, as PNG",
    "map": f"also write where each pixel came from, as {SHIFT_MAP_SUFFIX} for psal apply-shifts",
}
DEVICE_HELP = {
    "all": f"where to compute; {AUTO_HELP}",
    "network": f"where the network computes, patches always on the CPU; {AUTO_HELP}",
}
Alpha = Annotated[
    bool, typer.Option("--alpha", help="fill what is transparent: in the mask or, without one, in the photo")
]
MAX_VARIANTS = 100
Variants = Annotated[
    int,
    typer.Option(
        min=1, max=MAX_VARIANTS, help="number of fills, of different sources, best first: OUT, OUT_variant2, …"
    ),
]
Compare = Annotated[
    bool, typer.Option("--compare", help="also write before and after side by side, as OUT_compare.png")
]


def add_edit_commands(app: typer.Typer) -> None:
    """Add a command for every edit."""
    for edit in EDITS.values():
        app.command(edit.name, help=edit.summary)(_command(edit))


def _command(edit: Edit) -> Callable[..., None]:
    """Build the function that typer reads a command's arguments from."""
    required: dict[str, Any] = {"photo": PhotoPath}
    optional: dict[str, tuple[Any, Any]] = {}
    if edit.partner == "mask":
        optional = {"mask": (PARTNER_PATH["mask"], None), "alpha": (Alpha, False)}
    elif edit.partner:
        required[edit.partner] = SEVERAL_PATHS if edit.several_partners else PARTNER_PATH[edit.partner]
    required["out"] = OutPath
    optional |= {
        option.name: (_annotation(option), None if option.length_of else option.default) for option in edit.options
    }
    if any(option.length_of for option in edit.options):
        optional["extend"] = Extend, EXTEND
    optional |= {companion.flag: (_companion_path(companion), None) for companion in edit.companions}
    if edit.shifts:
        optional["shifts"] = Annotated[
            str | None, typer.Option(metavar="<path>", help=SHIFTS_HELP[edit.shifts], show_default=False)
        ], None  # fmt: skip
    if edit.partner == "mask":
        optional["variants"] = Variants, 1
    if edit.device:
        optional["device"] = Annotated[DeviceName, typer.Option(help=DEVICE_HELP[edit.device])], "auto"
    optional |= {
        "seed": (Seed, 0), "threads": (Threads, None), "overwrite": (Overwrite, False), "compare": (Compare, False),
    }  # fmt: skip

    def command(**given: Any) -> None:
        partners = {companion.flag: given[companion.flag] for companion in edit.companions}
        if edit.partner:
            one_or_more = given[edit.partner] if edit.several_partners else [given[edit.partner]]
            partners |= dict(zip(partner_names(edit.partner, len(one_or_more)), one_or_more, strict=True))
        paths = Paths(
            given["photo"], given["out"], {name: path for name, path in partners.items() if path is not None},
            shifts=given.get("shifts"), shifts_suffix=SHIFT_MAP_SUFFIX if edit.shifts == "map" else ".png",
            compare=given["compare"], variants=given.get("variants", 1), overwrite=given["overwrite"],
        )  # fmt: skip
        options = {name: given[name] for name in ("seed", *(option.name for option in edit.options))}
        options |= _sides(edit, given)
        options |= {"device": given["device"]} if edit.device else {}
        _run(Request(edit, paths, options, given["threads"], given.get("alpha", False)))

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
    if option.length_of:
        return Annotated[str | None, typer.Option(callback=_length, help=option.help, show_default=False)]
    if option.choices:
        return Annotated[Literal[option.choices], typer.Option(help=option.help)]
    if option.is_path:
        return Annotated[Path | None, typer.Option(help=option.help, show_default=False)]
    if isinstance(option.default, bool):
        flag = f"--{option.name}/--no-{option.name}" if option.default else f"--{option.name}"
        return Annotated[bool, typer.Option(flag, help=option.help)]
    if isinstance(option.default, int):
        return Annotated[int, typer.Option(min=option.minimum, max=option.maximum, help=option.help)]

    def above_minimum(value: float) -> float:
        if option.minimum is not None and value <= option.minimum:
            raise typer.BadParameter(f"{value:g} is not above {option.minimum:g}")
        return value

    return Annotated[float, typer.Option(callback=above_minimum, max=option.maximum, help=option.help)]


def _length(text: str | None) -> str | None:
    try:
        return None if text is None else check_length(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def _sides(edit: Edit, given: dict[str, Any]) -> dict[str, str]:
    """Lengths that were given; for the others ``--extend``, or 0 if only single sides were given."""
    names = [option.name for option in edit.options if option.length_of]
    if not names:
        return {}
    single = any(given[name] is not None for name in names)
    rest = "0" if single and given["extend"] == EXTEND else given["extend"]
    return {name: rest if given[name] is None else given[name] for name in names}


def _companion_path(companion: Companion) -> Any:
    text = f"{companion.help}: one for all, or a folder with the same names"
    return Annotated[Path | None, typer.Option(f"--{companion.flag}", help=text, show_default=False)]


def _run(request: Request) -> None:
    """Edit one photo or a folder of them; exit with 1 if any failed, with 3 if one had nothing to edit."""
    with errors_as_messages():
        _check_seed(request.options["seed"])
        if request.edit.partner == "mask" and not request.alpha and "mask" not in request.paths.partners:
            raise UsageError("there is no mask: give one, or --alpha to fill what is transparent")
        plan = plan_jobs(request.paths)
        if request.options.get("device") == "cuda":
            from psal.devices import choose_device

            choose_device("cuda")  # once, and not for every photo
        if request.threads is not None:
            import torch

            torch.set_num_threads(request.threads)
        for line in plan.passed_over:
            say(f"passed over {line}")
        done: list[Path] = []
        unchanged: list[Path] = []
        with progress_bar(len(plan.jobs)) as (bar, task):

            def work(count: int, job: Job) -> None:
                bar.update(task, description=job.photo.name, completed=count)
                outcome = edit_file(request, job, lambda share: bar.update(task, completed=count + share))
                (unchanged if outcome.unchanged else done).append(job.photo)
                written = ", ".join(map(str, job.extras.values())) if job.keeps_out else job.out
                say(f"wrote {written}" + (f" ({outcome.note})" if outcome.note else ""), bar)

            failures = plan.failures + run_jobs(plan.jobs, work)
        if request.paths.photo.is_dir():
            say(f"{len(done) + len(unchanged)} done, {plan.skipped} skipped (they exist), {len(failures)} failed")
        for line in failures:
            complain(line)
        if failures or unchanged:
            raise typer.Exit(FAILED if failures else NOTHING_TO_EDIT)


def _check_seed(seed: int) -> None:
    if not -(2**63) <= seed < 2**63:  # as psal.seeds.check_seed, without loading torch
        raise UsageError(f"seed must fit into 64 bits, got {seed}")
