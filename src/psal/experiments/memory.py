"""The paper's Table 1: memory, time and operations of every layer, as the maps grow."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from psal.experiments.cell import Setting, gigaflops, measure
from psal.experiments.feature_maps import CHANNELS
from psal.experiments.markdown import number, origin, table
from psal.measure.record import Cell, Record
from psal.models.attentions import label

NAME = "memory"
LAYERS = (
    *("full-materialized", "full-chunked", "full", "local", "linear", "performer", "reformer"),
    *("psal1", "psal3", "psal-aggregate"),
)
SIZES = (64, 128, 256, 512)
PATCH_SIZE = 7
PAPER = {  # GB, from its Table 1
    "Full attention": (0.30, 4.98, 15.26, 250.04),
    "Local attention": (0.19, 0.64, 3.23, 13.12),
    "Linear attention": (0.11, 0.46, 1.85, 7.47),
    "Performer": (0.71, 2.84, 11.55, 17.68),
    "Reformer": (0.47, 1.86, 7.42, 21.47),
    "PSAL 3": (0.01, 0.01, 0.04, 0.18),
    "PSAL Aggreg.": (0.05, 0.19, 0.74, 2.95),
}


def run(
    record: Record,
    layers: Sequence[str],
    sizes: Sequence[int],
    *,
    limit: float,
    patience: float,
    threads: int,
    device: str,
    progress: Callable[[int, str], None],
) -> None:
    """Measure every cell that is not in the record yet.

    Args:
        record: where the cells are kept.
        layers: names for :func:`psal.models.attentions.build_attention`.
        sizes: sides of the maps.
        limit: bytes; a cell that would take more is computed from a smaller size.
        patience: seconds; a cell that would take longer is computed too.
        threads: of the CPU.
        device: "cpu" or "cuda".
        progress: called with how many cells are done, and the next one.
    """
    settings = [
        Setting(name, size, backward=backward, patch_size=PATCH_SIZE, threads=threads, device=device)
        for name in layers
        for backward in (False, True)
        for size in sorted(sizes)
    ]
    for done, setting in enumerate(settings):
        smaller = [
            (s, record.cells[cell_name(s)])
            for s in settings[:done]
            if (s.attention, s.backward) == (setting.attention, setting.backward)
        ]
        measured = [(s, cell) for s, cell in smaller if "computed_from" not in cell]
        progress(done, f"{label(setting.attention)}, {setting.size}²{', backward' if setting.backward else ''}")
        record.keep(cell_name(setting), partial(_cell, setting, measured, limit, patience))
    progress(len(settings), "")


def cell_name(setting: Setting) -> str:
    """What a cell is called in the record."""
    return f"{setting.attention} {setting.size} {'backward' if setting.backward else 'forward'}"


def _cell(setting: Setting, smaller: list[tuple[Setting, Cell]], limit: float, patience: float) -> Cell:
    counted = {"gigaflops": gigaflops(setting)}
    if smaller:
        base, cell = smaller[-1]
        pixels = (setting.size / base.size) ** 2
        growth = pixels**2 if setting.attention.startswith("full") else pixels
        memory_growth = pixels**2 if setting.attention == "full-materialized" else pixels
        expected = {"peak": cell["peak"] * memory_growth, "seconds": cell["seconds"] * growth}
        if expected["peak"] > limit or expected["seconds"] > patience:
            return expected | counted | {"computed_from": base.size}
    return measure(setting) | counted


def markdown(record: Record) -> str:
    """results/memory.md."""
    settings = record.settings
    layers, sizes = settings["layers"], settings["sizes"]
    head = ["layer", *(f"{size}²" for size in sizes)]

    def shown(quantity: str, unit: float) -> str:
        rows = []
        for name in layers:
            cells = [[record.cells.get(f"{name} {size} {mode}") for mode in ("forward", "backward")] for size in sizes]
            rows.append([label(name), *(_pair(both, quantity, unit) for both in cells)])
        return table(head, rows)

    paper = [[name, *(f"{value:.2f}" for value in values)] for name, values in PAPER.items()]
    return f"""\
Peak memory in GB (10⁹ bytes) above the idle process, inputs and output included:

{shown("peak", 1e9)}

Seconds:

{shown("seconds", 1)}

Operations in 10⁹ (matrix products, and candidates compared by psal):

{shown("gigaflops", 1)}

Each cell: forward, and in brackets forward and backward with the gradients of query, key and value. ≈ marks what was
not run, because it would have taken more than {number(settings["limit_gb"])} GB or {number(settings["patience"])} s:
it is computed from the largest size that was run, times the pixels, squared where all pairs are compared (for the
memory, only where they are all kept at once).
Patches of {settings["patch_size"]}, {settings["channels"]} channels (random convolutions of the bundled stereo pair),
{settings["threads"]} threads, {settings["device"]}. Every cell was measured in processes of its own: time, the
median of up to five runs, in one, and memory in another whose C library hands freed memory back at once.
Layers other than "materialized" and "sdpa" go through the queries in parts and compute these again in backward, so
that they take far less memory than in the paper.

The paper's own figures for forward, in GB:

{table(head if len(sizes) == 4 else ["layer", "64²", "128²", "256²", "512²"], paper)}

{_about_the_paper()}

{origin(record.metadata)}"""


def _about_the_paper() -> str:
    """What its cells for full attention are."""

    def gib(n: int) -> float:  # of one matrix of n × n floats
        return n**2 * 4 / 2**30

    cells = dict(zip(SIZES, PAPER["Full attention"], strict=True))
    small, middle = (cells[size] / gib((size - 3) ** 2) for size in (64, 128))
    return f"""\
Its 256² and 512² cells for full attention are the size of one matrix of n × n floats, with n = 253² and 509²:
{gib(253**2):.2f} and {gib(509**2):.2f} GiB. They do not follow from its 64² and 128² cells, which are {small:.1f} and
{middle:.1f} such matrices (n = 61² and 125²): attention that keeps both scores and weights needs at least two."""


def _pair(cells: list[Cell | None], quantity: str, unit: float) -> str:
    """Forward, and forward with backward in brackets; operations are always counted, never estimated."""

    def one(cell: Cell | None) -> str:
        if cell is None:
            return "–"
        estimated = "computed_from" in cell and quantity != "gigaflops"
        return ("≈ " if estimated else "") + number(cell[quantity] / unit)

    forward, backward = map(one, cells)
    return f"{forward} ({backward})"


def plot(record: Record, path: Path) -> None:
    """Memory and time of the forward pass against the number of pixels; hollow where it was computed."""
    from psal.experiments.plots import figure, save, style_of

    sizes = record.settings["sizes"]
    canvas, axes = figure(2)
    for axis, quantity, unit, what in zip(
        axes, ("peak", "seconds"), (1e9, 1.0), ("memory, GB", "time, s"), strict=True
    ):
        for name in record.settings["layers"]:
            cells = [record.cells[f"{name} {size} forward"] for size in sizes]
            values = [cell[quantity] / unit for cell in cells]
            style: dict[str, Any] = style_of(name)
            axis.plot(sizes, values, label=label(name), linewidth=1.5, **style)
            run = ["computed_from" not in cell for cell in cells]
            axis.plot(
                [s for s, r in zip(sizes, run, strict=True) if not r],
                [v for v, r in zip(values, run, strict=True) if not r],
                linestyle="none", marker=style["marker"], color=style["color"], markerfacecolor="white",
            )  # fmt: skip
        axis.set_xscale("log", base=2)
        axis.set_yscale("log")
        axis.set_xticks(sizes, [f"{size}²" for size in sizes])
        axis.set_xlabel("pixels")
        axis.set_title(f"{what}, forward", fontsize=10)
    axes[1].legend(fontsize=7, loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False)
    save(canvas, path)


def settings_of(
    layers: Sequence[str], sizes: Sequence[int], limit: float, patience: float, threads: int, device: str
) -> dict[str, Any]:
    """What goes into the record beside the cells."""
    return {
        "layers": list(layers), "sizes": sorted(sizes), "patch_size": PATCH_SIZE, "channels": CHANNELS,
        "limit_gb": limit, "patience": patience, "threads": threads, "device": device,
    }  # fmt: skip
