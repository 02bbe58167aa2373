"""The layer's speed, quality and memory as ratios from one run: what the README's table shows.

Run from the project's folder as ``python -m benchmarks.layer --data folder``.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from tqdm import tqdm

import psal
from benchmarks import faiss_search, frames, report
from benchmarks.faiss_search import Patches
from benchmarks.frames import Pair
from benchmarks.memory import peak_bytes_per_pixel
from benchmarks.report import Target
from psal.data.davis import MissingDataError
from psal.experiments.feature_maps import CHANNELS
from psal.experiments.markdown import update_readme
from psal.measure.timing import Case, Ratio, Timing, measure, metadata, ratio

PATCH_SIZE = 7
NEIGHBORS = 3
MEMORY_PATCH_SIZES = (3, 7, 15)
SEED = 0
BUSY = 0.5  # load from which timings are not to be trusted


@dataclass(frozen=True)
class Settings:
    """How much is measured."""

    size: int = 256
    sizes: tuple[int, ...] = (256, 512, 1024)
    memory_size: int = 512
    runs: int = 11
    pairs: int = 3
    threads: int = 2


QUICK = Settings(size=48, sizes=(32, 64, 128), memory_size=64, runs=3, pairs=1)


@dataclass
class Bench:
    """The pairs of frames, and what has been measured on them."""

    data: Path
    settings: Settings
    pairs: list[Pair]
    rows: list[dict[str, Any]] = field(default_factory=list)
    timings: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    memory: list[dict[str, Any]] = field(default_factory=list)

    def time(self, group: str, pair: Pair, cases: dict[str, Case]) -> dict[str, Timing]:
        """Measure cases against each other, and keep the record."""
        timings = measure(cases, runs=self.settings.runs, label=f"{group}, {pair.sequence}")
        self.keep(group, pair, timings)
        return timings

    def keep(self, group: str, pair: Pair, timings: dict[str, Timing]) -> None:
        kept = self.timings.setdefault(group, {}).setdefault(pair.sequence, {})
        kept.update({name: timing.record() for name, timing in timings.items()})

    def add(self, target: Target, ratios: list[Ratio]) -> None:
        """A row from the ratios on all pairs: their median, from the lowest to the highest quartile."""
        value = statistics.median(r.value for r in ratios)
        self.rows.append(report.row(target, value, min(r.low for r in ratios), max(r.high for r in ratios)))

    def add_values(
        self, target: Target, values: list[float], summary: Callable[[list[float]], float] = statistics.mean
    ) -> None:
        """A row from plain numbers: their mean, from the least to the greatest."""
        self.rows.append(report.row(target, summary(values), min(values), max(values)))


def search(pair: Pair, **options: Any) -> psal.Matches:
    return psal.patch_match(pair.query, pair.key, patch_size=PATCH_SIZE, neighbors=NEIGHBORS, seed=SEED, **options)


def search_case(pair: Pair, **options: Any) -> Case:
    return Case(lambda _: search(pair, **options))


def faiss_case(query: Patches, key: Patches, threads: int) -> Case:
    return Case(lambda _: faiss_search.build_and_search(query, key, NEIGHBORS, threads))


def attention(query: Tensor, key: Tensor, value: Tensor, *, aggregate: bool = False) -> Tensor:
    out = psal.patch_attention(
        query, key, value, aggregate=aggregate, patch_size=PATCH_SIZE, neighbors=NEIGHBORS, seed=SEED
    )
    assert isinstance(out, Tensor)
    return out


def forward_case(pair: Pair, aggregate: bool = False, threads: int | None = None, gradients: bool = False) -> Case:
    """The layer on a pair's features; the value is the key."""
    inputs = [x.clone().requires_grad_(gradients) for x in (pair.query, pair.key, pair.key)]
    return Case(lambda _: attention(*inputs, aggregate=aggregate), lambda: set_threads(threads))


def backward_case(pair: Pair, aggregate: bool = False, threads: int | None = None) -> Case:
    """Gradients of all three inputs; the forward before it is not timed."""
    inputs = [x.clone().requires_grad_() for x in (pair.query, pair.key, pair.key)]
    cotangent = torch.rand(pair.query.shape, generator=torch.Generator().manual_seed(SEED))

    def prepare() -> Tensor:
        set_threads(threads)
        return attention(*inputs, aggregate=aggregate)

    return Case(lambda out: torch.autograd.grad(out, inputs, cotangent), prepare)


def set_threads(threads: int | None) -> None:
    """So many threads from here on; None leaves them as they are."""
    if threads is not None:
        torch.set_num_threads(threads)


def exact_rows(bench: Bench) -> None:
    """The default search and the paper's against exhaustive search: time and cost."""
    options: dict[str, dict[str, Any]] = {"default": {}, "random": {"init": "random", "iterations": 5}}
    speed: dict[str, list[Ratio]] = {name: [] for name in options}
    cost: dict[str, list[float]] = {name: [] for name in options}
    for pair in tqdm(bench.pairs, desc="exact search, up to a minute a pair", disable=None):
        psal.exact_match(pair.query[..., :16, :16], pair.key[..., :16, :16])  # warm-up
        start = time.perf_counter()
        exact = psal.exact_match(pair.query, pair.key, patch_size=PATCH_SIZE, neighbors=NEIGHBORS)
        exact_time = Timing([time.perf_counter() - start])
        timings = bench.time("search", pair, {name: search_case(pair, **options[name]) for name in options})
        bench.keep("search", pair, {"exact": exact_time})
        for name, timing in timings.items():
            low, high = timing.quartiles
            speed[name].append(Ratio(*(exact_time.median / t for t in (timing.median, high, low))))
            cost[name].append(psal.match_quality(search(pair, **options[name]), exact).cost_ratio)
    bench.add(Target("default search: times faster than exact search", 600, 1500, True), speed["default"])
    bench.add_values(Target("default search: mean best cost over the exact one", 1.03), cost["default"])
    bench.add(Target('`init="random"`, 5 iterations: times faster than exact search', 150, 300, True), speed["random"])
    bench.add_values(Target('`init="random"`, 5 iterations: mean best cost over the exact one'), cost["random"])


def faiss_rows(bench: Bench) -> None:
    """The default search against faiss on the same patches: time and cost."""
    speed, cost, threads = [], [], bench.settings.threads
    for pair in bench.pairs:
        query, key = (faiss_search.patches(x, PATCH_SIZE) for x in (pair.query, pair.key))
        timings = bench.time("faiss", pair, {"default": search_case(pair), "faiss": faiss_case(query, key, threads)})
        speed.append(ratio(timings["faiss"], timings["default"]))
        found = faiss_search.build_and_search(query, key, NEIGHBORS, threads)
        found_score = faiss_search.true_score(query, key, found)
        cost.append((search(pair).score[:, 0].mean() / found_score.mean()).item())
    name = f"faiss `{faiss_search.FACTORY}`, nprobe {faiss_search.PROBES}, build and search"
    bench.add(Target(f"default search: times faster than {name}", 20, 50, True), speed)
    bench.add_values(Target("default search: mean best cost over that of faiss", 1), cost)


def aggregate_rows(bench: Bench) -> None:
    """What aggregation adds to the forward pass."""
    ratios = []
    for pair in bench.pairs:
        timings = bench.time(
            "aggregation", pair, {"without": forward_case(pair), "with": forward_case(pair, aggregate=True)}
        )
        ratios.append(ratio(timings["with"], timings["without"]))
    bench.add(Target("forward with `aggregate=True`: time over that without", 2, 1.3), ratios)


def backward_rows(bench: Bench) -> None:
    """Backward against forward, without and with aggregation."""
    for aggregate, suffix in ((False, ""), (True, " with `aggregate=True`")):
        ratios = []
        for pair in bench.pairs:
            cases = {
                "forward": forward_case(pair, aggregate, gradients=True),
                "backward": backward_case(pair, aggregate),
            }
            timings = bench.time("gradients" + suffix, pair, cases)
            ratios.append(ratio(timings["backward"], timings["forward"]))
        bench.add(Target(f"backward: time over forward{suffix and ', both'}{suffix}", 1, 0.5), ratios)


def size_rows(bench: Bench) -> None:
    """How the forward pass grows with the picture."""
    ratios: dict[tuple[int, int], list[Ratio]] = {step: [] for step in pairwise(bench.settings.sizes)}
    for pair in bench.pairs:
        sized = {size: frames.load_pair(bench.data, pair.sequence, size) for size in bench.settings.sizes}
        timings = bench.time("size", pair, {f"{size}²": forward_case(x) for size, x in sized.items()})
        for small, large in ratios:
            ratios[small, large].append(ratio(timings[f"{large}²"], timings[f"{small}²"]))
    for (small, large), found in ratios.items():
        bench.add(Target(f"forward at {large}²: time over that at {small}²", 5.4, 4.5), found)


def memory_rows(bench: Bench) -> None:
    """Memory beyond inputs, outputs and gradients, over patch sizes, without and with aggregation."""
    settings = list(product(MEMORY_PATCH_SIZES, (False, True)))
    for patch_size, aggregate in tqdm(settings, desc="memory", leave=False, disable=None):
        size, sequence = bench.settings.memory_size, bench.pairs[0].sequence
        peak = peak_bytes_per_pixel(bench.data, sequence, size, patch_size, aggregate)
        bench.memory.append({"patch_size": patch_size, "aggregate": aggregate, **peak})
    peaks = [measured["bytes_per_pixel"] for measured in bench.memory]
    target = Target("peak memory beyond inputs, outputs and gradients: bytes per query pixel", 450, 250)
    bench.add_values(target, peaks, summary=max)


def threads_rows(bench: Bench) -> None:
    """What the second thread brings, forward and backward."""
    kinds: dict[str, Callable[..., Case]] = {"forward": forward_case, "backward": backward_case}
    for name, case in kinds.items():
        ratios = []
        for pair in bench.pairs:
            timings = bench.time(f"threads, {name}", pair, {"one": case(pair, threads=1), "two": case(pair, threads=2)})
            ratios.append(ratio(timings["one"], timings["two"]))
        bench.add(Target(f"{name} on two threads: times faster than on one", 1.7, 1.95, True), ratios)
    torch.set_num_threads(bench.settings.threads)


def rgb_rows(bench: Bench) -> None:
    """The pictures themselves against their features."""
    ratios = []
    for pair in bench.pairs:
        rgb = replace(pair, query=pair.image, key=pair.reference)
        timings = bench.time("channels", pair, {"3": forward_case(rgb), "16": forward_case(pair)})
        ratios.append(ratio(timings["3"], timings["16"]))
    bench.add(Target("forward on RGB (3 channels): time over that on 16 channels", 1, 0.5), ratios)


ROWS: dict[str, Callable[[Bench], None]] = {
    "exact": exact_rows,
    "faiss": faiss_rows,
    "aggregate": aggregate_rows,
    "backward": backward_rows,
    "size": size_rows,
    "memory": memory_rows,
    "threads": threads_rows,
    "rgb": rgb_rows,
}


def main() -> None:
    """Measure, print the table, and write it; a complete run also updates the README."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.layer", description=main.__doc__)
    parser.add_argument("--data", type=Path, required=True, help=f"folder with {frames.LAYOUT}".replace("%", "%%"))
    parser.add_argument("--out", type=Path, help="folder of layer.json and layer.md [results, or build if incomplete]")
    parser.add_argument("--pairs", type=int, help=f"pairs of frames, each of another sequence [{Settings.pairs}]")
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS), help="measure only these")
    parser.add_argument("--quick", action="store_true", help="tiny maps: shows that it runs, measures nothing")
    arguments = parser.parse_args()
    settings = QUICK if arguments.quick else Settings()
    settings = replace(settings, pairs=arguments.pairs or settings.pairs)
    complete = not arguments.quick and arguments.rows == list(ROWS)

    about = metadata("layer")
    if about["load"] is not None and about["load"] > BUSY:
        print(f"warning: other work keeps this machine busy (load {about['load']:.1f})", file=sys.stderr)
    torch.set_num_threads(settings.threads)
    try:
        names = frames.sequences(arguments.data)[: settings.pairs]
        bench = Bench(
            arguments.data, settings, [frames.load_pair(arguments.data, name, settings.size) for name in names]
        )
    except MissingDataError as error:
        sys.exit(f"error: {error}")
    for name in arguments.rows:
        print(f"measuring: {name}", file=sys.stderr, flush=True)
        ROWS[name](bench)

    shared = {"apart": frames.APART, "channels": CHANNELS, "patch_size": PATCH_SIZE, "neighbors": NEIGHBORS}
    record = {
        "metadata": about,
        "settings": asdict(settings) | shared | {"sequences": names},
        "rows": bench.rows,
        "timings": bench.timings,
        "memory": bench.memory,
    }
    print(report.table(bench.rows))
    out = arguments.out or Path("results" if complete else "build")
    out.mkdir(parents=True, exist_ok=True)
    (out / "layer.json").write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")
    text = report.layer_markdown(json.loads((out / "layer.json").read_text()))
    (out / "layer.md").write_text(text)
    if complete and arguments.out is None:
        update_readme(Path("README.md"), "layer", text)
    print(f"\nwritten to {out / 'layer.json'} and {out / 'layer.md'}", file=sys.stderr)


if __name__ == "__main__":
    main()
