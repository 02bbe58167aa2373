"""The paper's Tables 4, 5 and 8, and its figure of loss against cost: networks trained alike, but for the attention."""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from psal.experiments.cell import Setting, gigaflops, measure
from psal.experiments.markdown import number, origin, table
from psal.measure.record import Cell, Record
from psal.models.attentions import build_attention, label
from psal.models.colorizer import CHANNELS, FILTER_SIMILARITY
from psal.models.weights import PATCH_SIZE, load_colorizer
from psal.swap import swap_attention_
from psal.training.colorize import DISTANCES, ColorizeTask, errors_on_val
from psal.training.loop import WEIGHTS, Settings, train


@dataclass(frozen=True)
class Table:
    """What is trained, and what each network is tested with.

    Attributes:
        title: what it shows.
        rows: attention in training and in the test.
        size, iterations: of all networks; what finishes on two cores.
        paper: its loss for each row.
    """

    title: str
    rows: tuple[tuple[str, str], ...]
    size: int
    iterations: int
    paper: dict[tuple[str, str], float]


def _same(*names: str) -> tuple[tuple[str, str], ...]:
    return tuple((name, name) for name in names)


def layer_at(name: str, size: int) -> str:
    """The layer that a row stands for: local attention sees the same share of a picture as in the paper, 50 of 256."""
    return f"local{round(50 * size / 256)}" if name == "local" else name


TABLES = {
    "neighbors": Table(
        "Table 4: PSAL with more neighbours, and with aggregation",
        _same("psal1", "psal3", "psal7", "psal15", "psal31", "psal-aggregate"),
        size=128,
        iterations=3000,
        paper={
            ("psal1", "psal1"): 0.00832, ("psal3", "psal3"): 0.00228, ("psal7", "psal7"): 0.00234,
            ("psal15", "psal15"): 0.00237, ("psal31", "psal31"): 0.00232,
            ("psal-aggregate", "psal-aggregate"): 0.00194,
        },
    ),
    "similarity": Table(
        "Table 5: full attention by squared distance and by dot product",
        _same("full-materialized", "full-dot"),
        size=64,
        iterations=1000,
        paper={("full-materialized", "full-materialized"): 0.0024, ("full-dot", "full-dot"): 0.0064},
    ),
    "cost": Table(
        "Figure: loss against memory and operations",
        _same("full-stride3", "local", "linear", "performer", "reformer", "psal3", "psal-aggregate"),
        size=64,
        iterations=1000,
        paper={},
    ),
    "swap": Table(
        "Table 8: another attention in training than in the test",
        (
            *_same("psal1", "psal-aggregate"), ("psal-aggregate", "psal1"), *_same("psal3"), ("psal3", "psal1"),
            *_same("full-materialized"), ("full-materialized", "psal1"), *_same("local"), ("local", "psal1"),
        ),
        size=64,
        iterations=1000,
        paper={
            ("psal1", "psal1"): 0.0083, ("psal-aggregate", "psal-aggregate"): 0.0019,
            ("psal-aggregate", "psal1"): 0.0023, ("psal3", "psal3"): 0.0023, ("psal3", "psal1"): 0.0023,
            ("full-materialized", "full-materialized"): 0.0024, ("full-materialized", "psal1"): 0.0024,
            ("local", "local"): 0.0032, ("local", "psal1"): 0.0035,
        },
    ),
}  # fmt: skip


def seeds_of(attention: str, seeds: int) -> range:
    """The PSAL rows are trained several times, the slower ones once."""
    return range(seeds if attention.startswith("psal") else 1)


def run(
    record: Record,
    chosen: Table,
    data: Path,
    runs: Path,
    *,
    size: int,
    iterations: int,
    seeds: int,
    threads: int,
    progress: Callable[[int, str], None],
) -> None:
    """Train what is not trained yet, and measure what is not in the record yet.

    Args:
        record: where the cells are kept.
        chosen: the table.
        data: DAVIS's folder.
        runs: folder of the training runs, which go on where they stopped.
        size, iterations: of all networks.
        seeds: how many times the PSAL rows are trained.
        threads: of the CPU, when memory and time are measured.
        progress: called with the steps done, and what is done at the moment.
    """
    done = 0
    record.keep("grey", lambda: _tested(lambda grey, _: grey.expand(-1, 3, -1, -1), data, size))
    for trained, tested in chosen.rows:
        for seed in seeds_of(trained, seeds):
            out = _folder(runs, trained, size, iterations, seed)
            say = partial(_say_step, progress, done, f"{label(trained)}, seed {seed}")
            name = f"{trained} {tested} {seed}"
            record.keep(name, partial(_trained_and_tested, data, out, trained, tested, size, iterations, seed, say))
            done += iterations
        progress(done, f"{label(tested)}, memory")
        record.keep(f"{tested} cost", partial(_cost, tested, size, threads))


def _folder(runs: Path, trained: str, size: int, iterations: int, seed: int) -> Path:
    return runs / f"{trained}_{size}_{iterations}_{seed}"


def count_steps(chosen: Table, iterations: int, seeds: int) -> int:
    """Of all networks together."""
    return sum(iterations * len(seeds_of(trained, seeds)) for trained, _ in chosen.rows)


def _say_step(progress: Callable[[int, str], None], before: int, what: str, step: int, loss: float) -> None:
    progress(before + step, f"{what}, loss {loss:.5f}")


def _trained_and_tested(
    data: Path, out: Path, trained: str, tested: str, size: int, iterations: int, seed: int,
    progress: Callable[[int, float], None],
) -> Cell:  # fmt: skip
    task = ColorizeTask(data, layer_at(trained, size), size, seed)
    outcome = train(task, Settings(iterations, seed=seed), out, progress)
    cell = _tested(_network(out, trained, tested, size), data, size)
    return cell | {"left_out": outcome.complaints} if outcome.complaints else cell


def _network(run: Path, trained: str, tested: str, size: int) -> nn.Module:
    """A trained network, with the layer that it is tested with."""
    network, _ = load_colorizer(run / WEIGHTS)
    if trained != tested:
        swap_attention_(network, build_attention(layer_at(tested, size), channels=CHANNELS, patch_size=PATCH_SIZE))
    return network


def _tested(network: Callable[[Tensor, Tensor], Tensor], data: Path, size: int) -> Cell:
    errors = errors_on_val(network, data, size)
    return {
        "loss": statistics.fmean(x for found in errors.values() for x in found),
        "by_distance": {str(distance): statistics.fmean(found) for distance, found in errors.items()},
    }


def _cost(attention: str, size: int, threads: int) -> Cell:
    setting = Setting(layer_at(attention, size), size, threads=threads)
    return measure(setting) | {"gigaflops": gigaflops(setting)}


def losses(record: Record, trained: str, tested: str) -> list[float]:
    """Of all seeds."""
    seeds = seeds_of(trained, record.settings["seeds"])
    return [record.cells[f"{trained} {tested} {seed}"]["loss"] for seed in seeds]


def left_out(record: Record) -> list[str]:
    """A line for each frame that could not be used in a training."""
    return list(dict.fromkeys(line for cell in record.cells.values() for line in cell.get("left_out", [])))


def markdown(record: Record, name: str) -> str:
    """results/colorization_<name>.md."""
    chosen, settings = TABLES[name], record.settings
    rows = []
    for trained, tested in chosen.rows:
        found, cost = losses(record, trained, tested), record.cells[f"{tested} cost"]
        spread = f" ({min(found):.5f} to {max(found):.5f})" if len(found) > 1 else ""
        paper = chosen.paper.get((trained, tested))
        rows.append(
            [
                label(trained), label(tested), f"{statistics.fmean(found):.5f}{spread}", number(cost["gigaflops"]),
                f"{cost['peak'] / 1e9:.3f}", number(cost["seconds"]), f"{paper:.4f}" if paper else "",
            ]
        )  # fmt: skip
    window = layer_at("local", settings["size"]).removeprefix("local")
    local = f"\nThe window of local attention is {window}: in proportion that of the paper, 50 of 256."
    seeds = settings["seeds"]
    several = f"\nOf {seeds} seeds of a PSAL network the mean, the lowest and the highest; others were trained once."
    has_psal = any(trained.startswith("psal") for trained, _ in chosen.rows)
    head = ["attention in training", "in the test", "loss", "10⁹ operations", "GB", "s", "paper's loss"]
    return f"""\
{chosen.title}:

{table(head, rows)}

Mean square error on the val split: the middle frame of each sequence, with the references 1, 3, 5 and 10 frames before
and after it; a border of {PATCH_SIZE} is left out. The grey frames themselves have \
{record.cells["grey"]["loss"]:.5f}.{several if has_psal else ""}
All networks: {settings["size"]}², {settings["iterations"]:,} iterations with one pair each, Adam at 0.001, weights
averaged over the last 1,000 steps or all. They start alike: the chroma of what attention finds is added to the grey,
and the key's filters are like the query's ({FILTER_SIMILARITY} of 1), as training
from unlike filters finds nothing to compare.
How like was chosen by the error on this split; PSAL 1, which cannot learn what to compare, keeps what it starts with.
Operations, memory and time are those of the attention layer in the test, forward,
as in `psal bench memory`.{local if ("local", "local") in chosen.rows else ""}
The paper trained at 256² for 200,000 iterations on more sequences: `--size 256 --iterations 200000`.

{origin(record.metadata)}"""


def plot(record: Record, name: str, path: Path) -> None:
    """Loss against memory and against operations."""
    from psal.experiments.plots import figure, save, style_of

    canvas, axes = figure(2)
    quantities = ("peak", 1e9, "memory of the layer, GB"), ("gigaflops", 1.0, "10⁹ operations of the layer")
    for axis, (quantity, unit, what) in zip(axes, quantities, strict=True):
        for trained, tested in TABLES[name].rows:
            if trained != tested:
                continue
            cost, loss = record.cells[f"{tested} cost"], statistics.fmean(losses(record, trained, tested))
            axis.plot(
                cost[quantity] / unit, loss, linestyle="none", markersize=8, label=label(tested), **style_of(tested)
            )
        axis.set_xscale("log")
        axis.xaxis.set_minor_formatter("")  # between powers of ten labels overlap
        axis.set_xlabel(what)
        axis.set_ylabel("loss")
    axes[1].legend(fontsize=7, loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False)
    save(canvas, path)


def untrained(runs: Path, chosen: Table, *, size: int, iterations: int) -> list[Path]:
    """Weights that a strip needs and that are not there: tables are kept longer than the runs behind them."""
    files = [_folder(runs, trained, size, iterations, 0) / WEIGHTS for trained, _ in chosen.rows]
    return [file for file in files if not file.exists()]


def strip(data: Path, runs: Path, chosen: Table, *, size: int, iterations: int, path: Path) -> None:
    """A test frame coloured by each network of the table with its farthest reference, side by side."""
    from psal.data import davis
    from psal.experiments.plots import save, strip_of
    from psal.experiments.reconstruction import STRIP_ZOOM, pixels_of
    from psal.training.colorize import gray_of

    _, pair = max(davis.distant_pairs(data, "val", DISTANCES), key=lambda found: found[0])
    frame, reference = (davis.load_square(file, size)[None] for file in (pair.frame, pair.reference))
    grey = gray_of(frame)
    pictures = {"frame": frame, "reference": reference, "grey": grey.expand_as(frame)}
    for trained, tested in chosen.rows:
        network = _network(_folder(runs, trained, size, iterations, 0), trained, tested, size)
        title = label(trained) if trained == tested else f"{label(trained)} → {label(tested)}"
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            pictures[title] = network(grey, reference)
    save(strip_of({title: pixels_of(x) for title, x in pictures.items()}, STRIP_ZOOM), path)


def settings_of(name: str, size: int, iterations: int, seeds: int, threads: int) -> dict[str, Any]:
    """What goes into the record beside the cells."""
    rows: Sequence[Sequence[str]] = TABLES[name].rows
    return {
        "table": name, "rows": [list(row) for row in rows], "size": size, "iterations": iterations, "seeds": seeds,
        "patch_size": PATCH_SIZE, "threads": threads,
    }  # fmt: skip
