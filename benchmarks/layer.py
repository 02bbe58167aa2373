"""Speed, quality and memory of the layer, as ratios from one run.

Run from the project's folder as ``python -m benchmarks.layer --data folder``.
"""

import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import torch

import psal
from benchmarks import faiss_search, frames
from benchmarks.frames import Pair
from benchmarks.layer_cases import (
    NEIGHBORS,
    PATCH_SIZE,
    backward_case,
    faiss_case,
    forward_case,
    search,
    search_case,
)  # fmt: skip
from benchmarks.layer_memory import bytes_per_pixel
from benchmarks.runner import Benchmark
from psal.data.image_folder import MissingDataError
from psal.experiments.feature_maps import CHANNELS
from psal.measure.process import run_in_fresh_process
from psal.measure.quantities import Quantities
from psal.measure.record import Cell
from psal.measure.terminal import track
from psal.measure.timing import Case, Ratio, Timing, ratio, timed


@dataclass(frozen=True)
class Settings:
    """How much is measured.

    Attributes:
        size: side of the maps.
        sizes: sides at which the growth with the size is measured.
        memory_size, memory_patch_sizes: side of the maps and sizes of the patches at which memory is measured.
        runs: timed rounds.
        pairs: number of pairs of frames.
        threads: number of CPU threads.
    """

    size: int = 256
    sizes: tuple[int, ...] = (256, 512, 1024)
    memory_size: int = 512
    memory_patch_sizes: tuple[int, ...] = (3, 7, 15)
    runs: int = 11
    pairs: int = 3
    threads: int = 2


QUICK = Settings(size=40, sizes=(16, 32), memory_size=32, memory_patch_sizes=(3,), runs=1, pairs=1)


@dataclass(frozen=True)
class Inputs:
    """What all groups measure on."""

    data: Path
    settings: Settings
    pairs: list[Pair]


def against_exact_search(inputs: Inputs) -> Cell:
    """Time and cost of the default search and of the paper's, against exhaustive search."""
    options: dict[str, dict[str, Any]] = {"default": {}, "random": {"init": "random", "iterations": 5}}
    speedups: dict[str, list[Ratio]] = {name: [] for name in options}
    costs: dict[str, list[float]] = {name: [] for name in options}
    found = Quantities()
    for pair in track(inputs.pairs, "exact search, up to a minute per pair"):
        psal.exact_match(pair.query[..., :16, :16], pair.key[..., :16, :16])  # warm-up
        exact_search = partial(psal.exact_match, pair.query, pair.key, patch_size=PATCH_SIZE, neighbors=NEIGHBORS)
        seconds, exact = timed(exact_search)
        exact_time = Timing([seconds])
        cases = {name: search_case(pair, **options[name]) for name in options}
        timings = found.time("search", pair.sequence, cases, inputs.settings.runs)
        found.keep_times("search", pair.sequence, {"exact": exact_time})
        for name, timing in timings.items():
            low, high = timing.quartiles
            speedups[name].append(Ratio(*(exact_time.median / t for t in (timing.median, high, low))))
            costs[name].append(psal.match_quality(search(pair, **options[name]), exact).cost_ratio)
    for name, label in (("default", "default search"), ("random", '`init="random"`, 5 iterations')):
        found.add_ratios(f"{label}: speedup", speedups[name], against="exact search", unit="×")
        found.add(f"{label}: mean cost of the best match, ratio", costs[name], against="exact search")
    return found.cell()


def against_faiss(inputs: Inputs) -> Cell:
    """Time and cost of the default search, against faiss on the same patches."""
    speedups, costs, threads = [], [], inputs.settings.threads
    found = Quantities()
    for pair in track(inputs.pairs, "faiss"):
        query, key = (faiss_search.patches(x, PATCH_SIZE) for x in (pair.query, pair.key))
        cases = {"default": search_case(pair), "faiss": faiss_case(query, key, threads)}
        timings = found.time("faiss", pair.sequence, cases, inputs.settings.runs)
        speedups.append(ratio(timings["faiss"], timings["default"]))
        index = faiss_search.build_and_search(query, key, NEIGHBORS, threads)
        faiss_score = faiss_search.true_score(query, key, index)
        costs.append((search(pair).score[:, 0].mean() / faiss_score.mean()).item())
    faiss = f"faiss `{faiss_search.FACTORY}`, nprobe {faiss_search.PROBES}"
    found.add_ratios("default search: speedup", speedups, against=f"{faiss}, build and search", unit="×")
    found.add("default search: mean cost of the best match, ratio", costs, against=faiss)
    return found.cell()


def aggregation(inputs: Inputs) -> Cell:
    """Forward pass with aggregation, against without."""
    found, ratios = Quantities(), []
    for pair in track(inputs.pairs, "aggregation"):
        cases = {"without": forward_case(pair), "with": forward_case(pair, aggregate=True)}
        timings = found.time("aggregation", pair.sequence, cases, inputs.settings.runs)
        ratios.append(ratio(timings["with"], timings["without"]))
    found.add_ratios("forward with `aggregate=True`: time ratio", ratios, against="without")
    return found.cell()


def backward(inputs: Inputs) -> Cell:
    """Backward pass against forward pass, without and with aggregation."""
    found = Quantities()
    for aggregate, suffix in ((False, ""), (True, " with `aggregate=True`")):
        ratios = []
        for pair in track(inputs.pairs, "backward"):
            cases = {
                "forward": forward_case(pair, aggregate, gradients=True),
                "backward": backward_case(pair, aggregate),
            }
            timings = found.time("gradients" + suffix, pair.sequence, cases, inputs.settings.runs)
            ratios.append(ratio(timings["backward"], timings["forward"]))
        found.add_ratios(f"backward{suffix}: time ratio", ratios, against=f"forward{suffix}")
    return found.cell()


def growth(inputs: Inputs) -> Cell:
    """Forward pass at each size, against the next smaller one."""
    found = Quantities()
    ratios: dict[tuple[int, int], list[Ratio]] = {step: [] for step in pairwise(inputs.settings.sizes)}
    for pair in track(inputs.pairs, "sizes"):
        sized = {size: frames.load_pair(inputs.data, pair.sequence, size) for size in inputs.settings.sizes}
        cases = {f"{size}²": forward_case(x) for size, x in sized.items()}
        timings = found.time("size", pair.sequence, cases, inputs.settings.runs)
        for small, large in ratios:
            ratios[small, large].append(ratio(timings[f"{large}²"], timings[f"{small}²"]))
    for (small, large), steps in ratios.items():
        found.add_ratios(f"forward at {large}²: time ratio", steps, against=f"{small}²")
    return found.cell()


def memory(inputs: Inputs) -> Cell:
    """Peak memory over patch sizes, without and with aggregation."""
    peaks = []
    for patch_size, aggregate in track(list(product(inputs.settings.memory_patch_sizes, (False, True))), "memory"):
        sequence, size = inputs.pairs[0].sequence, inputs.settings.memory_size
        peak = run_in_fresh_process(bytes_per_pixel, str(inputs.data), sequence, size, patch_size, aggregate)
        peaks.append({"patch_size": patch_size, "aggregate": aggregate, **peak})
    own = [peak["bytes_per_pixel"] for peak in peaks]
    found = Quantities()
    found.add("peak memory beyond inputs, outputs and gradients", own, value=max(own), unit="bytes per query pixel")
    return found.cell(memory=peaks)


def threads(inputs: Inputs) -> Cell:
    """Two threads against one, forward and backward."""
    found = Quantities()
    kinds: dict[str, Callable[..., Case]] = {"forward": forward_case, "backward": backward_case}
    for name, case in kinds.items():
        ratios = []
        for pair in track(inputs.pairs, f"threads, {name}"):
            cases = {"one": case(pair, threads=1), "two": case(pair, threads=2)}
            timings = found.time(f"threads, {name}", pair.sequence, cases, inputs.settings.runs)
            ratios.append(ratio(timings["one"], timings["two"]))
        found.add_ratios(f"{name} on two threads: speedup", ratios, against="one thread", unit="×")
    torch.set_num_threads(inputs.settings.threads)
    return found.cell()


def channels(inputs: Inputs) -> Cell:
    """Three channels against sixteen."""
    found, ratios = Quantities(), []
    for pair in track(inputs.pairs, "channels"):
        cases = {"3": forward_case(pair.as_rgb()), "16": forward_case(pair)}
        timings = found.time("channels", pair.sequence, cases, inputs.settings.runs)
        ratios.append(ratio(timings["3"], timings["16"]))
    found.add_ratios("forward on 3 channels (RGB): time ratio", ratios, against="16 channels")
    return found.cell()


GROUPS: dict[str, Callable[[Inputs], Cell]] = {
    "exact": against_exact_search,
    "faiss": against_faiss,
    "aggregation": aggregation,
    "backward": backward,
    "size": growth,
    "memory": memory,
    "threads": threads,
    "channels": channels,
}


BENCHMARK = Benchmark(
    "layer",
    "Measure the layer's speed, quality and memory.",
    list(GROUPS),
    packages=("torch", "numpy", "faiss-cpu", "pillow"),
    data=f"folder with {frames.LAYOUT}",
)


def main() -> None:
    """Measure, print the table and write results/layer.json."""
    parser = BENCHMARK.parser()
    parser.add_argument("--pairs", type=int, help=f"number of pairs of frames [{Settings.pairs}]")
    arguments = parser.parse_args()
    settings = replace(QUICK if arguments.quick else Settings(), threads=arguments.threads)
    settings = replace(settings, pairs=arguments.pairs or settings.pairs)
    try:
        names = frames.sequences(arguments.data)[: settings.pairs]
        pairs = [frames.load_pair(arguments.data, name, settings.size) for name in names]
    except MissingDataError as error:
        sys.exit(f"error: {error}")
    inputs = Inputs(arguments.data, settings, pairs)
    shared: dict[str, Any] = {"frame_distance": frames.FRAME_DISTANCE, "channels": CHANNELS, "patch_size": PATCH_SIZE}
    shared |= {"neighbors": NEIGHBORS, "sequences": names}
    groups = {name: partial(group, inputs) for name, group in GROUPS.items()}
    BENCHMARK.measure(arguments, asdict(settings) | shared, groups)


if __name__ == "__main__":
    main()
