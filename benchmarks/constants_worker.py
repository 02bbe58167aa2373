"""Worker of :mod:`benchmarks.constants`: runs workloads with the kernels of one library.

It must not import psal, because that loads the installed kernels, and a process can load only one library of them.
"""

import sys
from dataclasses import dataclass
from functools import cache

import torch
import torch.nn.functional as F
from torch import Tensor

NEIGHBORS = 3
QUALITY_STRIDE = 4  # quality is that of every fourth query along each axis: exact search of all would take hours


@dataclass(frozen=True)
class Workload:
    """What runs.

    Attributes:
        init, iterations: of the search; init is the op's code, 0 for random and 1 for tree.
        channels: of the feature maps.
        patch: side of the patches.
        train: whether attention and gradients run, too.
        batch: number of maps.
        side: of the maps, if they are cropped.
        query_side: of the query alone.
        noise: white noise in place of the features.
    """

    init: int = 1
    iterations: int = 1
    channels: int = 16
    patch: int = 7
    train: bool = False
    batch: int = 1
    side: int | None = None
    query_side: int | None = None
    noise: bool = False


WORKLOADS = {
    "tree": Workload(),
    "wide": Workload(channels=64),
    "random": Workload(init=0, iterations=5),
    "train": Workload(train=True),
    "train RGB": Workload(channels=3, train=True),
    "batch": Workload(batch=8, side=128),
    "patch 3": Workload(patch=3),
    "few queries": Workload(query_side=32),
    "noise": Workload(channels=3, side=128, noise=True),
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


@cache
def maps(workload: str, pair: str) -> tuple[Tensor, Tensor]:
    """Query and key: random 3×3 convolutions of the images with ReLU, always the same ones, or noise."""
    chosen, generator = WORKLOADS[workload], torch.Generator().manual_seed(0)
    weight = torch.randn(chosen.channels, 3, 3, 3, generator=generator) / 27**0.5
    made = [
        F.conv2d(image, weight, padding=1).relu()[..., : chosen.side, : chosen.side] for image in image_pairs()[pair]
    ]
    if chosen.noise:
        made = [torch.rand(x.shape, generator=generator) for x in made]
    query, key = (x.expand(chosen.batch, -1, -1, -1).contiguous() for x in made)
    return query[..., : chosen.query_side, : chosen.query_side].contiguous(), key


def mean_cost(score: Tensor) -> float:
    """Mean cost of the best match, over every fourth query along each axis."""
    return -score[0, 0, ::QUALITY_STRIDE, ::QUALITY_STRIDE].double().mean().item()


def serve(library: str) -> None:
    """Answer lines with a workload and an image pair by the mean cost of the best matches."""
    torch.ops.load_library(library)  # type: ignore[no-untyped-call]
    for line in sys.stdin:
        workload, pair = line.rstrip("\n").split(",")
        print(_run(*maps(workload, pair), WORKLOADS[workload]), flush=True)


def _run(query: Tensor, key: Tensor, workload: Workload) -> float:
    ops, patch, seed = torch.ops.psal, [workload.patch, workload.patch], torch.tensor(0)
    index, score = ops.search(
        query, key, None, None, None, seed, patch, NEIGHBORS, workload.iterations, 0, workload.init, 0
    )
    if workload.train:
        out, mass = ops.attend(index, score, key, patch, 1.0)
        grad_score, _ = ops.attend_backward(out, index, score, key, out, mass, patch, 1.0)
        ops.score_backward(grad_score, query, key, index, score, patch, 0, 0)
    return mean_cost(score)


if __name__ == "__main__":
    serve(sys.argv[1])
