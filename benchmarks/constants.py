"""Measure the constants of csrc/kernels/tuning.h: speed and quality of the kernels with one of them changed.

For each variant, csrc is copied, the constant changed and the kernels built. Default and variant then run alternately,
each time in a fresh process. Results go to results/constants.json: the ratio of the times (variant over default,
median over the rounds), and the mean cost of the best match over that of the exact one, before and after.

    python -m benchmarks.constants
    python -m benchmarks.constants --only kLeafSize --rounds 1 --out /tmp/constants.json
"""

import argparse
import json
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

ROOT = Path(__file__).parents[1]
TUNING = Path("csrc/kernels/tuning.h")
PATCH, NEIGHBORS = 7, 3
REPEATS = 5  # per process, after one to warm up
QUALITY_STRIDE = 4  # quality is that of every fourth query along each axis: exact search of all would take hours

# What runs in a process: init, iterations, feature channels, whether attention and gradients run too, and the batch.
WORKLOADS: dict[str, dict[str, Any]] = {
    "tree": {"init": 1, "iterations": 1, "channels": 16},
    "wide": {"init": 1, "iterations": 1, "channels": 64},
    "random": {"init": 0, "iterations": 5, "channels": 16},
    "train": {"init": 1, "iterations": 1, "channels": 16, "train": True},
    "batch": {"init": 1, "iterations": 1, "channels": 16, "batch": 8, "side": 128},
}
VARIANTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "kPcaIterations": ("tree", ("6", "24")),
    "kMinChannelSamples": ("wide", ("64", "512")),
    "kMaxChannelSamples": ("tree", ("512", "8192")),
    "kComponentSamples": ("tree", ("512", "4608")),
    "kMinDescriptorChannels": ("tree", ("3", "6")),
    "kMaxFrequencyOrder[]": ("tree", ("{9, 2, 2}", "{9, 4, 2}")),
    "kLeafSize": ("tree", ("32", "128")),
    "kSplitSamples": ("tree", ("16", "144")),
    "kLeafPrefilter": ("tree", ("4", "12")),
    "kSeedPeriod": ("tree", ("1", "3")),
    "kChunkRows": ("tree", ("8", "32")),
    "kChunkPixels": ("tree", ("1024", "16384")),
    "kIncrementalGain": ("tree", ("1", "1000")),
    "kLowerBoundMinVectors": ("random", ("1000",)),
    "kTermCapacity": ("train", ("256", "4096")),
    "kRowsPerTask": ("train", ("2", "32")),
    "kDescriptorRowsPerTask": ("tree", ("4", "64")),
    "kWindowRowsPerTask": ("train", ("1", "8")),
    "kQueriesPerTask": ("tree", ("128", "8192")),
    "kLeavesPerTask": ("tree", ("4", "256")),
    "kSequentialBatchPixels": ("batch", ("4096", "65536")),
}


def image_pairs() -> dict[str, tuple[Tensor, Tensor]]:
    """Query and key images ``(1, 3, 256, W)`` in 0..1, from scikit-image: two views, and two halves of one picture."""
    from skimage import data

    left, right, _ = data.stereo_motorcycle()
    coffee = data.coffee()
    crops = {
        "motorcycle": (left[100:356, 200:520], right[100:356, 200:520]),
        "coffee": (coffee[70:326, :300], coffee[70:326, 300:]),
    }
    tensors = {name: [torch.tensor(crop).permute(2, 0, 1)[None] / 255 for crop in pair] for name, pair in crops.items()}
    return {name: (query, key) for name, (query, key) in tensors.items()}


def features(image: Tensor, channels: int, side: int | None = None, batch: int = 1) -> Tensor:
    """Random 3×3 convolutions with ReLU, always the same ones: ``(batch, channels, H, W)``."""
    weight = torch.randn(channels, 3, 3, 3, generator=torch.Generator().manual_seed(0)) / 27**0.5
    maps = F.conv2d(image, weight, padding=1).relu()
    return maps[..., :side, :side].expand(batch, -1, -1, -1).contiguous()


def run_worker(library: str, name: str) -> dict[str, Any]:
    """Seconds of one call (median) and mean cost of the best match, per image pair, with the kernels of ``library``."""
    torch.ops.load_library(library)  # type: ignore[no-untyped-call]
    ops, patch, result = torch.ops.psal, [PATCH, PATCH], {}
    workload = dict(WORKLOADS[name])
    init, iterations, train = workload.pop("init"), workload.pop("iterations"), workload.pop("train", False)
    for pair, images in image_pairs().items():
        query, key = (features(image, **workload) for image in images)
        seconds = []
        for _ in range(1 + REPEATS):
            start = time.perf_counter()
            index, score = ops.search(
                query, key, None, None, None, torch.tensor(0), patch, NEIGHBORS, iterations, 0, init, 0
            )
            if train:
                out, mass = ops.attend(index, score, key, patch, 1.0)
                grad_score, _ = ops.attend_backward(out, index, score, key, out, mass, patch, 1.0)
                ops.score_backward(grad_score, query, key, index, score, patch, 0, 0)
            seconds.append(time.perf_counter() - start)
        result[pair] = {"seconds": statistics.median(seconds[1:]), "cost": mean_cost(score)}
    return result


def mean_cost(score: Tensor) -> float:
    """Mean cost of the best match, over some of the queries."""
    return -score[0, 0, ::QUALITY_STRIDE, ::QUALITY_STRIDE].double().mean().item()


@cache
def exact_costs(channels: int, side: int | None) -> dict[str, float]:
    """Mean cost of the exact best match, per image pair."""
    import psal

    costs = {}
    for pair, images in image_pairs().items():
        query, key = (features(image, channels, side) for image in images)
        mask = torch.zeros_like(query[:, :1], dtype=torch.bool)
        mask[..., ::QUALITY_STRIDE, ::QUALITY_STRIDE] = True
        costs[pair] = mean_cost(psal.exact_match(query, key, patch_size=PATCH, neighbors=1, query_mask=mask).score)
    return costs


def build(folder: Path, constant: str | None = None, value: str = "") -> tuple[str, str]:
    """Build the kernels with ``constant`` changed; return the library's path and the constant's default."""
    shutil.copytree(ROOT / "csrc", folder / "csrc")
    shutil.copy(ROOT / "setup.py", folder)
    default = ""
    if constant:
        text = (folder / TUNING).read_text()
        match = re.search(rf"\b{re.escape(constant)} = ([^;]+);", text)
        if not match:
            raise ValueError(f"{TUNING} has no constant {constant}")
        default = match[1]
        (folder / TUNING).write_text(text[: match.start(1)] + value + text[match.end(1) :])
    command = [sys.executable, "setup.py", "--quiet", "build_ext", "--build-lib", "lib"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"building {constant} = {value} failed:\n{done.stdout}{done.stderr}")
    return str(next((folder / "lib").rglob("_C*.so"))), default


def worker(library: str, workload: str) -> dict[str, Any]:
    """:func:`run_worker` in a fresh process."""
    command = [sys.executable, "-m", "benchmarks.constants", "--worker", library, workload]
    output = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    result: dict[str, Any] = json.loads(output)
    return result


def measure(default: str, variant: str, workload: str, rounds: int, exact: dict[str, float]) -> dict[str, Any]:
    """Compare two builds, alternating between them."""
    runs = [(worker(default, workload), worker(variant, workload)) for _ in range(rounds)]
    cell: dict[str, Any] = {}
    for pair, cost in exact.items():
        ratios = [after[pair]["seconds"] / before[pair]["seconds"] for before, after in runs]
        cell[pair] = {
            "time_ratio": round(statistics.median(ratios), 3),
            "time_ratio_range": [round(min(ratios), 3), round(max(ratios), 3)],
            "default_cost_ratio": round(runs[0][0][pair]["cost"] / cost, 4),
            "cost_ratio": round(runs[0][1][pair]["cost"] / cost, 4),
        }
    return cell


def main() -> None:
    """Measure all variants, or those of one constant."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=sorted(VARIANTS), help="measure this constant alone")
    parser.add_argument("--rounds", type=int, default=7, help="runs of each build (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "constants.json")
    parser.add_argument("--worker", nargs=2, metavar=("LIBRARY", "WORKLOAD"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        print(json.dumps(run_worker(*arguments.worker)))
        return
    from psal.measure.machine import metadata

    settings = {
        "patch_size": PATCH,
        "neighbors": NEIGHBORS,
        "rounds": arguments.rounds,
        "quality_stride": QUALITY_STRIDE,
        "workloads": WORKLOADS,
    }
    command = shlex.join(["python", "-m", "benchmarks.constants", *sys.argv[1:]])
    content: dict[str, Any] = {"metadata": metadata(command), "settings": settings, "cells": {}}
    with tempfile.TemporaryDirectory() as temporary:
        library, _ = build(Path(temporary, "default"))
        for constant in [arguments.only] if arguments.only else VARIANTS:
            workload, values = VARIANTS[constant]
            exact = exact_costs(WORKLOADS[workload]["channels"], WORKLOADS[workload].get("side"))
            for value in values:
                folder = Path(temporary, "variant")
                variant, default = build(folder, constant, value)
                cell = measure(library, variant, workload, arguments.rounds, exact)
                shutil.rmtree(folder)
                content["cells"][f"{constant} = {value}"] = {"default": default, "workload": workload, "pairs": cell}
                arguments.out.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
                print(f"{constant} = {value} (default {default}): {json.dumps(cell)}", flush=True)


if __name__ == "__main__":
    main()
