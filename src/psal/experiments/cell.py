"""One layer on one size of map: its peak memory and time in a process of its own, and its operations."""

import argparse
import json
import math
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils.flop_counter import FlopCounterMode

from psal.experiments.feature_maps import CHANNELS, features
from psal.measure.peak_memory import hand_memory_back, peak_of
from psal.models.attentions import build_attention

Shape = Sequence[int]

RUNS = 5
ENOUGH = 8.0  # seconds of timed runs after which no further one is begun
WARM_UP_SIZE = 16


@dataclass(frozen=True)
class Setting:
    """What is measured.

    Attributes:
        attention: name of the layer.
        size: side of the maps.
        channels: 16 random features of the bundled stereo pair, or 3 for its colours; the value is the key.
        backward: with the gradients of query, key and value, or forward alone.
        patch_size: of the layer.
        threads: of the CPU.
        device: "cpu" or "cuda".
    """

    attention: str
    size: int
    channels: int = CHANNELS
    backward: bool = False
    patch_size: int = 7
    threads: int = 2
    device: str = "cpu"


def measure(setting: Setting) -> dict[str, Any]:
    """Measure time and peak memory, each in a fresh process.

    Returns:
        ``peak``: bytes above the idle process, inputs and outputs included; ``seconds``: the median of several runs,
        and ``runs``: their number.

    Raises:
        RuntimeError: if a process fails; the message has its last line.
    """
    return _in_fresh_process(setting, "time") | _in_fresh_process(setting, "memory")


def _in_fresh_process(setting: Setting, what: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "psal.experiments.cell", what, json.dumps(asdict(setting))]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise RuntimeError(f"{setting.attention} at {setting.size}² failed: {last}")
    measured: dict[str, Any] = json.loads(done.stdout)
    return measured


def gigaflops(setting: Setting) -> float:
    """Operations of matrix products, convolutions and psal's own kernels, in 10⁹, counted without computing."""
    formulas = {
        torch.ops.aten._scaled_dot_product_flash_attention_for_cpu: _sdpa_flops,
        torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward: _sdpa_backward_flops,
    }
    with FakeTensorMode(), FlopCounterMode(display=False, custom_mapping=formulas) as counter:
        shape = (1, setting.channels, setting.size, setting.size)
        _step(_layer(setting), [torch.rand(shape) for _ in range(3)], setting.backward)
    return float(counter.get_total_flops()) / 1e9


def _sdpa_flops(query: Shape, key: Shape, value: Shape, *_: Any, **__: Any) -> int:
    return _product_flops(query, key) + _product_flops(query, key)


def _sdpa_backward_flops(grad: Shape, query: Shape, key: Shape, *_: Any, **__: Any) -> int:
    """The scores again, then two products for the gradients of each product."""
    return 5 * _product_flops(query, key)


def _product_flops(query: Shape, key: Shape) -> int:
    """All queries with all keys; query, key and value are equally wide."""
    return 2 * math.prod(query) * key[-2]


def _layer(setting: Setting) -> nn.Module:
    return build_attention(setting.attention, channels=setting.channels, patch_size=setting.patch_size, seed=0)


def _step(layer: nn.Module, inputs: list[Tensor], backward: bool) -> None:
    """What is measured: the layer forward, and backward if asked for."""
    for x in inputs:
        x.requires_grad_(backward)
        x.grad = None
    with torch.set_grad_enabled(backward):
        out = layer(*inputs)
        if backward:
            out.backward(torch.ones_like(out))


def _inputs(setting: Setting, size: int) -> list[Tensor]:
    from psal.data.davis import square
    from psal.data.samples import stereo_views

    left, right = (square(view, size)[None] for view in stereo_views())
    if setting.channels == CHANNELS:
        left, right = features(left), features(right)
    return [x.to(setting.device) for x in (left, right, right.clone())]


def main() -> None:
    """Print one measurement as JSON; :func:`measure` runs this."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("what", choices=("time", "memory"))
    parser.add_argument("setting", help="a Setting as JSON")
    arguments = parser.parse_args()
    setting = Setting(**json.loads(arguments.setting))
    torch.set_flush_denormal(True)  # weights far below one make products ten times slower otherwise
    torch.set_num_threads(setting.threads)
    if arguments.what == "memory":
        hand_memory_back()

    layer = _layer(setting).to(setting.device)
    tiny = _inputs(setting, WARM_UP_SIZE)
    for _ in range(2):  # libraries, thread pools and the autograd engine are in memory before it counts
        _step(layer, tiny, setting.backward)
    inputs = _inputs(setting, setting.size)
    step = partial(_step, layer, inputs, setting.backward)
    print(json.dumps(_peak(step, inputs) if arguments.what == "memory" else _seconds(step, inputs[0].device)))


def _peak(step: Callable[[], None], inputs: list[Tensor]) -> dict[str, Any]:
    return {"peak": peak_of(step, inputs[0].device) + sum(x.untyped_storage().nbytes() for x in inputs)}


def _seconds(step: Callable[[], None], device: torch.device) -> dict[str, Any]:
    def once() -> float:
        start = time.perf_counter()
        step()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        return time.perf_counter() - start

    first = once()
    seconds = [first] if first > ENOUGH / 2 else []  # a fast first run also fetched fresh memory from the system
    while len(seconds) < RUNS and sum(seconds) < ENOUGH:
        seconds.append(once())
    return {"seconds": statistics.median(seconds), "runs": len(seconds)}


if __name__ == "__main__":
    main()
