"""Time and peak memory of a super-resolution network and of its cross-scale layer, each in a fresh process."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from psal.measure.memory import peak_of, return_freed_memory
from psal.measure.process import run_in_fresh_process
from psal.measure.timing import time_repeatedly
from psal.models.csnln.attentions import label
from psal.models.csnln.weights import load_upscaler
from psal.training.upscale import load_pair

WARM_UP_SIZE = 32
MAX_RUNS = 3
MAX_SECONDS = 20.0  # of timed runs


@dataclass(frozen=True)
class CostSetting:
    """A network and the picture that it enlarges.

    Attributes:
        weights: file of the network.
        picture: file of the picture, which is downscaled first.
        cross_scale: the cross-scale attention.
        in_scale: the in-scale attention; None for the one of its training.
        crop: side of the small crop; None for the whole picture.
        threads: number of CPU threads.
    """

    weights: str
    picture: str
    cross_scale: str
    in_scale: str | None
    crop: int | None
    threads: int


def measure(setting: CostSetting) -> dict[str, Any]:
    """Measure time and peak memory of the whole network, and of one call of its cross-scale layer.

    Returns:
        ``size``: height and width of the small picture; ``seconds`` and ``branch_seconds``: medians of the timed runs;
        ``peak`` and ``branch_peak``: bytes beyond what is in use before, outputs included; ``threads``. Those of the
        branch are missing where it is left out.

    Raises:
        RuntimeError: if a process fails; the message has the last line of its error output.
    """
    cost: dict[str, Any] = {"threads": setting.threads}
    for function in (_time, _peak):
        cost |= run_in_fresh_process(
            function, asdict(setting), threads=setting.threads, label=f"{label(setting.cross_scale)}"
        )
    return cost


def _time(setting: dict[str, Any]) -> dict[str, Any]:
    """Called in a fresh process."""
    found: dict[str, Any] = {}
    for name, run in _runs(CostSetting(**setting), found).items():
        found[f"{name}seconds"] = time_repeatedly(run, max_runs=MAX_RUNS, max_seconds=MAX_SECONDS).median
    return found


def _peak(setting: dict[str, Any]) -> dict[str, Any]:
    """Called in a fresh process."""
    return_freed_memory()
    runs = _runs(CostSetting(**setting), {})
    return {f"{name}peak": peak_of(run, torch.device("cpu")) for name, run in runs.items()}


def _runs(setting: CostSetting, found: dict[str, Any]) -> dict[str, Callable[[], object]]:
    """Return what to measure, after a warm-up on a small picture that loads libraries and thread pools."""
    torch.set_flush_denormal(True)  # tiny attention weights make products ten times slower otherwise
    torch.set_grad_enabled(False)
    network = load_upscaler(Path(setting.weights), cross_scale=setting.cross_scale, in_scale=setting.in_scale, seed=0)
    network(torch.rand(1, 3, WARM_UP_SIZE, WARM_UP_SIZE))
    picture = load_pair(Path(setting.picture), network.scale, setting.crop)[0][None]
    found["size"] = list(picture.shape[2:])
    runs: dict[str, Callable[[], object]] = {"": lambda: network(picture)}
    if (layer := network.cell.first_cross_scale()) is not None:
        features = network.head(picture)
        runs["branch_"] = lambda: layer(features)
    return runs
