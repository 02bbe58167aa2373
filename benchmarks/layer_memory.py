"""Peak memory of the layer itself, measured in a fresh process.

Forward: peak resident memory, minus what was resident before it (inputs included), minus the output. Backward: its own
peak, minus the same and the gradients of query, key and value; what the forward pass saved for it counts.
"""

import gc
from pathlib import Path

import torch
from torch import Tensor

import psal
from benchmarks.frames import load_pair
from psal.measure.memory import PeakResident, return_freed_memory

WARM_UP_SIZE = 32
WARM_UP_RUNS = 2


def bytes_per_pixel(data: str, sequence: str, size: int, patch_size: int, aggregate: bool) -> dict[str, float]:
    """Peak memory per query pixel. Call this in a fresh process.

    Args:
        data: folder with DAVIS in it.
        sequence: name of a sequence.
        size: side of the maps.
        patch_size: of the layer.
        aggregate: of the layer.

    Returns:
        ``forward`` and ``backward`` bytes, and ``bytes_per_pixel``, the larger of the two.
    """
    return_freed_memory()
    pair = load_pair(Path(data), sequence, size)
    small = pair.query[..., :WARM_UP_SIZE, :WARM_UP_SIZE]
    for _ in range(WARM_UP_RUNS):  # loads libraries, thread pools and the autograd engine
        _measure(small, small, small, patch_size, aggregate)
    return _measure(pair.query, pair.key, pair.key, patch_size, aggregate)


def _measure(query: Tensor, key: Tensor, value: Tensor, patch_size: int, aggregate: bool) -> dict[str, float]:
    inputs = [x.detach().clone().requires_grad_() for x in (query, key, value)]
    grad = torch.rand_like(query)
    gc.collect()
    peak = PeakResident()
    out = psal.patch_attention(*inputs, patch_size=patch_size, aggregate=aggregate, seed=0)
    assert isinstance(out, Tensor)
    forward = peak.bytes() - _size(out)
    peak.restart()
    grads = torch.autograd.grad(out, inputs, grad)
    backward = peak.bytes() - _size(out, *grads)
    pixels = query[0, 0].numel()
    return {
        "forward": forward / pixels,
        "backward": backward / pixels,
        "bytes_per_pixel": max(forward, backward) / pixels,
    }


def _size(*tensors: Tensor) -> int:
    return sum(x.untyped_storage().nbytes() for x in tensors)
