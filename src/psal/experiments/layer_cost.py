"""Cost of one attention layer on maps of one size: time and peak memory in fresh processes, and operations."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils.flop_counter import FlopCounterMode

from psal.experiments.feature_maps import CHANNELS, features
from psal.measure.memory import peak_of, return_freed_memory
from psal.measure.process import run_in_fresh_process
from psal.measure.timing import time_repeatedly
from psal.models.attentions import build_attention
from psal.models.inpainting.attentions import build_inpainting_attention

Shape = Sequence[int]

MAX_RUNS = 5
MAX_SECONDS = 8.0  # of timed runs
WARM_UP_SIZE = 16
WARM_UP_RUNS = 2


@dataclass(frozen=True)
class LayerSetting:
    """A layer and the maps it runs on.

    Attributes:
        attention: name for :func:`psal.models.attentions.build_attention`.
        size: side of the square maps, in pixels.
        channels: 3 for the colors of the bundled stereo pair, more for random features of it. The value is the key.
        backward: whether the gradients of query, key and value are computed too.
        patch_size: side of the patches.
        threads: number of CPU threads.
        device: "cpu" or "cuda".
        inpainting: whether the layer is that of the inpainting network, and the name one for
            :func:`psal.models.inpainting.attentions.build_inpainting_attention`.
    """

    attention: str
    size: int
    channels: int = CHANNELS
    backward: bool = False
    patch_size: int = 7
    threads: int = 2
    device: str = "cpu"
    inpainting: bool = False


def measure(setting: LayerSetting) -> dict[str, Any]:
    """Measure time and peak memory, each in a fresh process.

    Returns:
        ``seconds``: median of the timed runs; ``runs``: their count; ``peak``: bytes above the idle process, inputs
        and output included.

    Raises:
        RuntimeError: if a process fails; the message has the last line of its error output.
    """
    cost: dict[str, Any] = {}
    for function in (_time, _peak):
        cost |= run_in_fresh_process(
            function, asdict(setting), threads=setting.threads, label=f"{setting.attention} at {setting.size}²"
        )
    return cost


def _time(setting: dict[str, Any]) -> dict[str, Any]:
    """Called in a fresh process."""
    step = _WarmStep(LayerSetting(**setting))
    timing = time_repeatedly(step, max_runs=MAX_RUNS, max_seconds=MAX_SECONDS, device=step.device)
    return {"seconds": timing.median, "runs": len(timing.seconds)}


def _peak(setting: dict[str, Any]) -> dict[str, Any]:
    """Called in a fresh process."""
    return_freed_memory()
    step = _WarmStep(LayerSetting(**setting))
    return {"peak": peak_of(step, step.device) + sum(x.untyped_storage().nbytes() for x in step.inputs)}


class _WarmStep:
    """One pass of a layer over its maps, after warm-up passes over small ones.

    The warm-up loads libraries, thread pools and the autograd engine into memory before anything is measured.
    """

    def __init__(self, setting: LayerSetting) -> None:
        torch.set_flush_denormal(True)  # tiny attention weights make products ten times slower otherwise
        layer = _layer(setting).to(setting.device)
        small = _inputs(setting, WARM_UP_SIZE)
        for _ in range(WARM_UP_RUNS):
            _step(layer, small, setting.backward)
        self.inputs = _inputs(setting, setting.size)
        self.device = self.inputs[0].device
        self._run = partial(_step, layer, self.inputs, setting.backward)

    def __call__(self) -> None:
        self._run()


def _layer(setting: LayerSetting) -> nn.Module:
    if setting.inpainting:
        return build_inpainting_attention(setting.attention, seed=0)
    return build_attention(setting.attention, channels=setting.channels, patch_size=setting.patch_size, seed=0)


def _inputs(setting: LayerSetting, size: int) -> list[Tensor]:
    """Query, key and value, each ``(1, C, size, size)``."""
    from psal.data.image_folder import square
    from psal.data.samples import stereo_views

    left, right = (square(view, size)[None] for view in stereo_views())
    if setting.channels > 3:
        left, right = (features(view, setting.channels) for view in (left, right))
    return [x.to(setting.device) for x in (left, right, right.clone())]


def _step(layer: nn.Module, inputs: list[Tensor], backward: bool) -> None:
    for x in inputs:
        x.requires_grad_(backward)
        x.grad = None
    with torch.set_grad_enabled(backward):
        out = layer(*inputs)
        if backward:
            out.backward(torch.ones_like(out))


def gigaflops(setting: LayerSetting) -> float:
    """Count the operations of matrix products, convolutions and psal's kernels, in 10⁹, without computing them."""
    formulas = {
        torch.ops.aten._scaled_dot_product_flash_attention_for_cpu: _sdpa_flops,
        torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward: _sdpa_backward_flops,
    }
    with FakeTensorMode(), FlopCounterMode(display=False, custom_mapping=formulas) as counter:
        shape = (1, setting.channels, setting.size, setting.size)
        _step(_layer(setting), [torch.rand(shape) for _ in range(3)], setting.backward)
    return float(counter.get_total_flops()) / 1e9


def _sdpa_flops(query: Shape, key: Shape, value: Shape, *_: Any, **__: Any) -> int:
    return 2 * _product_flops(query, key)


def _sdpa_backward_flops(grad: Shape, query: Shape, key: Shape, *_: Any, **__: Any) -> int:
    """The scores are recomputed; each of the two products then needs two products for its gradients."""
    return 5 * _product_flops(query, key)


def _product_flops(query: Shape, key: Shape) -> int:
    """All queries with all keys; query, key and value have the same width."""
    return 2 * math.prod(query) * key[-2]
