"""Measure the constants of csrc/kernels/tuning.h: ``python -m benchmarks.constants``

For each variant, csrc is copied, one constant changed and the kernels built, for this machine's instruction set alone.
Then the default build and each variant take turns, each in a process of its own. results/constants.json gets the ratio
of their times, and how far the best matches of each are from the exact ones.
"""

import argparse
import os
import re
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import cache, partial
from pathlib import Path

import torch

from benchmarks.constants_worker import NEIGHBORS, QUALITY_STRIDE, WORKLOADS, image_pairs, maps, mean_cost
from benchmarks.kernel_build import ROOT, build, copy_sources
from psal.measure.machine import command_line, metadata
from psal.measure.process import LineServer
from psal.measure.quantities import Quantities
from psal.measure.record import Cell, Record
from psal.measure.table import quantity_tables
from psal.measure.terminal import show, track
from psal.measure.timing import Case, ratio, time_interleaved

TUNING = Path("csrc/kernels/tuning.h")
VARIANTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "kPcaIterations": ("tree", ("6", "24")),
    "kMinChannelSamples": ("wide", ("128", "2048")),
    "kMaxChannelSamples": ("tree", ("512", "8192")),
    "kComponentSamples": ("tree", ("512", "4608")),
    "kMinDescriptorChannels": ("tree", ("3", "6")),
    "kMaxFrequencyOrder[]": ("tree", ("{9, 2, 2}", "{9, 4, 2}")),
    "kLeafSize": ("tree", ("32", "128")),
    "kSubtreeKeys": ("tree", ("1024", "16384")),
    "kSplitSamples": ("tree", ("16", "144")),
    "kUsualPlan": ("tree", ("{2, 2, 1, true, 0}", "{4, 2, 8, true, 0}", "{4, 2, 4, true, 2}", "{8, 2, 4, true, 0}")),
    "kThoroughPlan": ("patch 3", ("{1, 1, 4, false, 2}", "{1, 1, 16, false, 5}")),
    "kNoisePlan": ("noise", ("{1, 1, 16, false, 8}", "{1, 1, 32, false, 24}")),
    "kSmallPatch": ("patch 3", ("8",)),
    "kFewQueries": ("few queries", ("1 << 20",)),
    "kNoiseThreshold": ("noise", ("1",)),
    "kChunkRows": ("tree", ("8", "32")),
    "kChunkPixels": ("tree", ("1024", "16384")),
    "kBorderDraws": ("tree", ("0", "16")),
    "kIncrementalGain": ("tree", ("1", "1000")),
    "kBoundedMinVectors": ("wide", ("1000",)),
    "kLowerBoundMinVectors": ("random", ("1000",)),
    "kTermCapacity": ("train", ("256", "4096")),
    "kTileRows": ("train RGB", ("4", "16")),
    "kTileColumns": ("train RGB", ("32", "128")),
    "kRowsPerTask": ("train", ("2", "32")),
    "kDescriptorRowsPerTask": ("tree", ("4", "64")),
    "kWindowRowsPerTask": ("train", ("1", "8")),
    "kGradientRowsPerTask": ("train", ("4", "16")),
    "kQueriesPerTask": ("tree", ("128", "8192")),
    "kLeavesPerTask": ("tree", ("4", "256")),
    "kSequentialBatchPixels": ("batch", ("4096", "65536")),
}


@cache
def exact_costs(workload: str) -> dict[str, float]:
    """Mean cost of the exact best match, per image pair."""
    from psal.functional import exact_match

    costs = {}
    for pair in image_pairs():
        query, key = (x[:1] for x in maps(workload, pair))
        mask = torch.zeros_like(query[:, :1], dtype=torch.bool)
        mask[..., ::QUALITY_STRIDE, ::QUALITY_STRIDE] = True
        exact = exact_match(query, key, patch_size=WORKLOADS[workload].patch, neighbors=1, query_mask=mask)
        costs[pair] = mean_cost(exact.score)
    return costs


def server(library: Path) -> LineServer:
    """A process that runs workloads with the kernels of one library."""
    return LineServer([sys.executable, "-m", "benchmarks.constants_worker", str(library)], cwd=ROOT)


def build_variant(folder: Path, constant: str | None = None, value: str = "") -> tuple[Path, str]:
    """Build the kernels with ``constant`` changed; return the library and the constant's default."""
    copy_sources(folder)
    default = ""
    if constant:
        text = (folder / TUNING).read_text()
        match = re.search(rf"\b{re.escape(constant)} =\s+([^;]+);", text)
        if not match:
            raise ValueError(f"{TUNING} has no constant {constant}")
        default = match[1]
        (folder / TUNING).write_text(text[: match.start(1)] + value + text[match.end(1) :])
    return build(folder), default


def measure(default_library: Path, built: dict[str, tuple[Path, str]], variant_name: str, rounds: int) -> Cell:
    """Compare the default build with a variant, alternating between them."""
    constant = variant_name.partition(" = ")[0]
    library, default_value = built[variant_name]
    workload = VARIANTS[constant][0]
    exact = exact_costs(workload)
    quantities = Quantities(label=f"{variant_name}, default {default_value}")
    with server(default_library) as default, server(library) as variant:  # both fresh, or one would be warmer
        ratios = []
        for pair in exact:
            cases = {
                name: Case(lambda _, process=process, pair=pair: process.ask(f"{workload},{pair}"))  # type: ignore[misc]
                for name, process in (("default", default), ("variant", variant))
            }
            timings = time_interleaved(cases, rounds=rounds)
            ratios.append(ratio(timings["variant"], timings["default"]))
        quantities.add_ratios(f"time, {workload}", ratios, against="default")
        for name, process in (("default", default), ("variant", variant)):
            costs = [float(process.ask(f"{workload},{pair}")) / exact[pair] for pair in exact]
            quantities.add(f"cost, {name}", costs, against="exact")
    return quantities.cell()


def main() -> None:
    """Measure all variants, or those of one constant."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.constants", description=main.__doc__)
    parser.add_argument("--only", nargs="+", choices=sorted(VARIANTS), help="measure these constants alone")
    parser.add_argument("--rounds", type=int, default=15, help="timed rounds of each image pair [15]")
    parser.add_argument("--out", type=Path, default=Path("results/constants.json"), help="results file; it is resumed")
    parser.add_argument("--overwrite", action="store_true", help="measure everything again")
    arguments = parser.parse_args()
    settings = {
        "neighbors": NEIGHBORS, "rounds": arguments.rounds, "quality_stride": QUALITY_STRIDE,
        "workloads": {name: asdict(workload) for name, workload in WORKLOADS.items()},
    }  # fmt: skip
    about = metadata(command_line("python -m benchmarks.constants", sys.argv[1:]))
    record = Record.resume(arguments.out, settings, about, arguments.overwrite)
    wanted = [(name, value) for name in arguments.only or VARIANTS for value in VARIANTS[name][1]]
    missing = [(name, value) for name, value in wanted if f"{name} = {value}" not in record.cells]
    with tempfile.TemporaryDirectory() as temporary, ThreadPoolExecutor(os.cpu_count()) as builders:
        library, _ = build_variant(Path(temporary, "default"))
        folders = (Path(temporary, str(i)) for i in range(len(missing)))
        building = [
            (f"{name} = {value}", builders.submit(build_variant, folder, name, value))
            for folder, (name, value) in zip(folders, missing, strict=True)
        ]
        built = {name: future.result() for name, future in track(building, "building")}
        for name in track(list(built), "measuring"):
            record.measure_once(name, partial(measure, library, built, name, arguments.rounds))
    show(record, quantity_tables(record))


if __name__ == "__main__":
    main()
