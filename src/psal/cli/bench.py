"""The commands ``psal bench …``: each measures a table of the paper anew."""

import contextlib
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from psal.cli.console import complain, errors_as_messages, progress_bar, say
from psal.cli.options import Device

if TYPE_CHECKING:
    from psal.measure.record import Record

bench = typer.Typer(
    no_args_is_help=True,
    help="Measure the paper's tables anew. What is measured is on disk at once: a run that was stopped goes on.",
)

Out = Annotated[Path, typer.Option("--out", "-o", help="folder of the JSON, the tables and the plots")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="measure again what is there")]
Readme = Annotated[
    Path | None, typer.Option(help="also put the tables into this file, between its markers", show_default=False)
]
Threads = Annotated[int, typer.Option(min=1, help="of the CPU")]
Layers = Annotated[str | None, typer.Option(help="only these, separated by commas", show_default=False)]


def _whole_numbers(text: str) -> str:
    if not all(part.isdigit() and int(part) for part in text.split(",")):
        raise typer.BadParameter(f"{text!r} is not a list of sizes such as 64,128")
    return text


Sizes = Annotated[str, typer.Option(callback=_whole_numbers, help="sides of the maps, separated by commas")]


@bench.command()
def memory(
    sizes: Sizes = "64,128,256,512",
    layers: Layers = None,
    limit: Annotated[float, typer.Option(min=0, help="GB; what would take more is computed, and marked")] = 16,
    patience: Annotated[
        float, typer.Option(min=0, help="seconds; what would take longer is computed, and marked")
    ] = 180,
    threads: Threads = 2,
    device: Device = "cpu",
    out: Out = Path("results"),
    overwrite: Overwrite = False,
    readme: Readme = None,
) -> None:
    """Table 1: memory, time and operations of every attention layer, as the maps grow (about an hour)."""
    with errors_as_messages("bench"):
        from psal.experiments import memory as table
        from psal.measure.machine import metadata
        from psal.measure.record import Record

        chosen = _layers(layers, table.LAYERS)
        numbers = [int(size) for size in sizes.split(",")]
        settings = table.settings_of(chosen, numbers, limit, patience, threads, device)
        record = Record(out / "memory.json", settings, metadata(_command()), overwrite)
        with _progress(len(chosen) * len(numbers) * 2) as progress:
            table.run(
                record, chosen, numbers,
                limit=limit * 1e9, patience=patience, threads=threads, device=device, progress=progress,
            )  # fmt: skip
        table.plot(record, out / "memory.png")
        _write(record, table.markdown(record), readme)


@bench.command()
def reconstruction(
    data: Annotated[
        Path | None, typer.Option(help="DAVIS's folder; the bundled stereo pair if left out", show_default=False)
    ] = None,
    pairs: Annotated[int, typer.Option(min=1, help="of frames, from all sequences in turn")] = 30,
    sizes: Sizes = "64,128,256,512",
    layers: Layers = None,
    threads: Threads = 2,
    out: Out = Path("results"),
    overwrite: Overwrite = False,
    readme: Readme = None,
) -> None:
    """Tables 2 and 3: the error of a frame rebuilt from an earlier one, by every layer (about 40 minutes)."""
    with errors_as_messages("bench"):
        import torch

        from psal.experiments import reconstruction as table
        from psal.measure.machine import metadata
        from psal.measure.record import Record

        torch.set_flush_denormal(True)  # weights far below one make products ten times slower otherwise
        torch.set_num_threads(threads)
        chosen = _layers(layers, table.LAYERS)
        numbers = [int(size) for size in sizes.split(",")]
        source = table.Source(data, pairs)
        settings = table.settings_of(source, chosen, numbers, threads)
        record = Record(out / "reconstruction.json", settings, metadata(_command()), overwrite)
        with _progress(table.count_cells(source, chosen, numbers)) as progress:
            table.run(record, source, chosen, numbers, threads=threads, progress=progress)
        table.plot(record, out / "reconstruction.png")
        table.strip(source, chosen, max(numbers), out / "reconstruction_strip.png")
        _write(record, table.markdown(record), readme)


@bench.command()
def colorization(
    table: Annotated[str, typer.Argument(help="neighbors, similarity, cost or swap", show_default=False)],
    data: Annotated[Path, typer.Option(help="DAVIS's folder", show_default=False)],
    size: Annotated[int | None, typer.Option(min=16, help="of the pictures; the table's own if left out")] = None,
    iterations: Annotated[int | None, typer.Option(min=1, help="steps; the table's own if left out")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="how often a PSAL network is trained")] = 3,
    runs: Annotated[Path, typer.Option(help="folder of the training runs, which go on if stopped")] = Path("runs"),
    threads: Threads = 2,
    out: Out = Path("results"),
    overwrite: Overwrite = False,
    readme: Readme = None,
) -> None:
    """Tables 4 (neighbors), 5 (similarity), 8 (swap) and a figure (cost): networks trained with each layer (hours)."""
    with errors_as_messages("bench,train"):
        import torch

        from psal.errors import UsageError
        from psal.experiments import colorization as tables
        from psal.measure.machine import metadata
        from psal.measure.record import Record

        if table not in tables.TABLES:
            raise UsageError(f"there is no table named {table!r}: choose from {', '.join(tables.TABLES)}")
        torch.set_flush_denormal(True)
        torch.set_num_threads(threads)
        chosen = tables.TABLES[table]
        side, steps = size or chosen.size, iterations or chosen.iterations
        settings = tables.settings_of(table, side, steps, seeds, threads)
        record = Record(out / f"colorization_{table}.json", settings, metadata(_command()), overwrite)
        with _progress(tables.count_steps(chosen, steps, seeds)) as progress:
            tables.run(
                record, chosen, data, runs,
                size=side, iterations=steps, seeds=seeds, threads=threads, progress=progress,
            )  # fmt: skip
        tables.plot(record, table, out / f"colorization_{table}.png")
        strip = out / f"colorization_{table}_strip.png"
        if missing := tables.untrained(runs, chosen, size=side, iterations=steps):
            complain(f"{strip} is not drawn anew: {missing[0]} is not there any more", prefix="warning: ")
        else:
            tables.strip(data, runs, chosen, size=side, iterations=steps, path=strip)
        for line in tables.left_out(record):
            complain(f"{line} (left out)", prefix="warning: ")
        _write(record, tables.markdown(record, table), readme)


def _layers(chosen: str | None, known: Sequence[str]) -> list[str]:
    from psal.models.attentions import check_name

    names = list(known) if chosen is None else chosen.split(",")
    for name in names:
        check_name(name)
    return names


def _command() -> str:
    """As it was typed."""
    return f"psal {shlex.join(sys.argv[1:])}"


@contextlib.contextmanager
def _progress(total: int) -> Iterator[Callable[[int, str], None]]:
    """A bar that is told how many cells are done, and the next one."""
    with progress_bar(total) as (bar, task):
        yield lambda done, what: bar.update(task, completed=done, description=what)


def _write(record: "Record", text: str, readme: Path | None) -> None:
    """The tables beside the JSON, on the terminal, and into the README if asked for."""
    from psal.experiments.markdown import update_readme
    from psal.io.atomic import write_atomically

    path = record.path.with_suffix(".md")
    write_atomically(path, text.encode())
    say(text)
    if readme is not None:
        update_readme(readme, record.path.stem, text)
    say(f"written to {record.path.parent}: {', '.join(sorted(p.name for p in path.parent.glob(f'{path.stem}*')))}")
