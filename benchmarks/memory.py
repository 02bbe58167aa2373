"""Peak memory of the layer, forward and backward, each setting in a process of its own.

"Beyond inputs, outputs and their gradients" means, of the process's resident memory: in forward, the peak minus what
was resident before it (inputs included) minus the output; in backward, the peak minus that minus the output and the
gradients of query, key and value, where what forward kept for it counts. The larger of the two is the layer's own.
"""

import argparse
import gc
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import psal
from benchmarks.frames import load_pair
from psal.measure.peak_memory import PeakResident, hand_memory_back


def peak_bytes_per_pixel(data: Path, sequence: str, size: int, patch_size: int, aggregate: bool) -> dict[str, Any]:
    """Bytes a query pixel beyond inputs, outputs and gradients, measured in a fresh process.

    Returns:
        ``forward`` and ``backward`` peaks, and ``bytes_per_pixel``, the larger one.
    """
    command = [sys.executable, "-m", "benchmarks.memory", str(data), sequence, str(size), str(patch_size)]
    command += ["--aggregate"] if aggregate else []
    command += ["--threads", str(torch.get_num_threads())]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"measuring memory failed:\n{done.stderr}")
    measured: dict[str, Any] = json.loads(done.stdout)
    return measured


def _measure(query: Tensor, key: Tensor, value: Tensor, patch_size: int, aggregate: bool) -> dict[str, float]:
    """Peaks of one forward and one backward in this process."""
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


def main() -> None:
    """Print one measurement as JSON; :func:`peak_bytes_per_pixel` runs this."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("sequence")
    parser.add_argument("size", type=int)
    parser.add_argument("patch_size", type=int)
    parser.add_argument("--aggregate", action="store_true")
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    hand_memory_back()
    pair = load_pair(arguments.data, arguments.sequence, arguments.size)
    tiny = pair.query[..., :32, :32]
    for _ in range(2):  # libraries, thread pools and the autograd engine are in memory before it counts
        _measure(tiny, tiny, tiny, arguments.patch_size, arguments.aggregate)
    measured = _measure(pair.query, pair.key, pair.key, arguments.patch_size, arguments.aggregate)
    print(json.dumps(measured))


if __name__ == "__main__":
    main()
