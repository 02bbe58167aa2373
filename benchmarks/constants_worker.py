"""Worker of :mod:`benchmarks.constants`: runs workloads with the kernels of one library.

It must not import psal, because that loads the installed kernels, and a process can load only one library of them.
"""

import sys
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

PATCH, NEIGHBORS = 7, 3
QUALITY_STRIDE = 4  # quality is that of every fourth query along each axis: exact search of all would take hours

# What runs: init (0 random, 1 tree), iterations, feature channels, whether attention and gradients run too, the batch.
WORKLOADS: dict[str, dict[str, Any]] = {
    "tree": {"init": 1, "iterations": 1, "channels": 16},
    "wide": {"init": 1, "iterations": 1, "channels": 64},
    "random": {"init": 0, "iterations": 5, "channels": 16},
    "train": {"init": 1, "iterations": 1, "channels": 16, "train": True},
    "batch": {"init": 1, "iterations": 1, "channels": 16, "batch": 8, "side": 128},
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


def mean_cost(score: Tensor) -> float:
    """Mean cost of the best match, over every fourth query along each axis."""
    return -score[0, 0, ::QUALITY_STRIDE, ::QUALITY_STRIDE].double().mean().item()


def serve(library: str) -> None:
    """Answer lines with a workload and an image pair by the mean cost of the best matches."""
    torch.ops.load_library(library)  # type: ignore[no-untyped-call]
    for line in sys.stdin:
        workload, pair = line.split()
        query, key = _maps(workload, pair)
        print(_run(query, key, WORKLOADS[workload]), flush=True)


@cache
def _maps(workload: str, pair: str) -> tuple[Tensor, Tensor]:
    shape = {name: WORKLOADS[workload][name] for name in ("channels", "side", "batch") if name in WORKLOADS[workload]}
    query, key = (features(image, **shape) for image in image_pairs()[pair])
    return query, key


def _run(query: Tensor, key: Tensor, workload: dict[str, Any]) -> float:
    ops, patch = torch.ops.psal, [PATCH, PATCH]
    seed, init, iterations = torch.tensor(0), workload["init"], workload["iterations"]
    index, score = ops.search(query, key, None, None, None, seed, patch, NEIGHBORS, iterations, 0, init, 0)
    if workload.get("train"):
        out, mass = ops.attend(index, score, key, patch, 1.0)
        grad_score, _ = ops.attend_backward(out, index, score, key, out, mass, patch, 1.0)
        ops.score_backward(grad_score, query, key, index, score, patch, 0, 0)
    return mean_cost(score)


if __name__ == "__main__":
    serve(sys.argv[1])
