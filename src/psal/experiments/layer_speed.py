"""Time of every op of the layer on a device, beside the model's bound, and the quality of its searches.

It is what a person with a card runs: one table, with the card, the driver and the versions.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from psal import ops
from psal.experiments.experiment import Progress
from psal.experiments.feature_maps import features
from psal.experiments.gpu_bounds import Problem, card_named, works
from psal.experiments.search_quality import cost_ratios
from psal.functional import patch_match
from psal.measure.record import Cell, Record
from psal.measure.table import Table, number
from psal.measure.timing import time_repeatedly
from psal.options import SearchOptions

DTYPES = {"float32": torch.float32, "float16": torch.float16}
MAX_RUNS, MAX_SECONDS = 20, 5.0
EXACT_QUERIES = 64  # along each axis, whose matches are compared with exhaustive search
SEED = 0


@dataclass(frozen=True)
class LayerSpeedExperiment:
    """Time of the layer's ops.

    Attributes:
        sizes: sides of the maps.
        device: "cpu" or "cuda".
        threads: number of CPU threads.
    """

    sizes: Sequence[int]
    device: str
    threads: int

    name = "layer_speed"

    @property
    def settings(self) -> dict[str, Any]:
        return {"sizes": sorted(self.sizes), "threads": self.threads, "device": describe_device(self.device)}

    @property
    def step_count(self) -> int:
        return len(self._cases())

    def _cases(self) -> list[tuple[int, str]]:
        """Half types make a difference to the kernels of a card alone."""
        dtypes = list(DTYPES) if self.device == "cuda" else ["float32"]
        return [(size, dtype) for size in sorted(self.sizes) for dtype in dtypes]

    def run(self, record: Record, progress: Progress) -> None:
        for done, (size, dtype) in enumerate(self._cases()):
            progress(done, f"{size}², {dtype}")
            record.measure_once(f"{size} {dtype}", partial(self._cell, size, dtype))
        progress(self.step_count, "")

    def _cell(self, size: int, dtype: str) -> Cell:
        query, key = (x.to(self.device, DTYPES[dtype]) for x in _maps(size))
        card = card_named(describe_device(self.device)["card"])
        model = works(Problem(size, query.shape[1], bytes_per_value=query.element_size()))
        rows = []
        for name, run in _calls(query, key):
            timing = time_repeatedly(run, max_runs=MAX_RUNS, max_seconds=MAX_SECONDS, device=query.device)
            bound = model[name].seconds_on(card) if card else None
            rows.append({"op": name, "seconds": timing.median, "runs": len(timing.seconds), "bound": bound})
        return {"size": size, "dtype": dtype, "ops": rows, "cost": _cost_ratios(query, key)}

    def draw(self, record: Record, folder: Path) -> list[str]:
        return []


def describe_device(device: str) -> dict[str, str]:
    """Return the card, its driver, and the versions that matter."""
    if device != "cuda":
        return {"card": "CPU"}
    version = torch.version.hip or torch.version.cuda
    found = {"card": torch.cuda.get_device_name(), "runtime": f"{'ROCm' if torch.version.hip else 'CUDA'} {version}"}
    if not torch.version.hip:
        found["driver"] = f"driver for CUDA {torch._C._cuda_getDriverVersion() / 1000:g}"  # type: ignore[attr-defined]
    return found


def _maps(size: int) -> tuple[Tensor, Tensor]:
    """Features of the bundled stereo pair, ``(1, 16, size, size)`` each."""
    from psal.data.image_folder import square
    from psal.data.samples import stereo_views

    left, right = (features(square(view, size)[None]) for view in stereo_views())
    return left, right


def _calls(query: Tensor, key: Tensor) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield every op with its inputs ready-made, by its name in the model."""
    working = torch.promote_types(query.dtype, torch.float32)
    options = {init: SearchOptions(init=init, seed=SEED) for init in ("tree", "random")}
    yield "search, seeded", partial(ops.search, query, key, None, None, options["tree"])
    yield "search, paper's schedule", partial(ops.search, query, key, None, None, options["random"])
    with torch.no_grad():
        index, score = ops.search(query, key, None, None, options["tree"])
    score = score.to(working)
    for name, side in (("attend", 1), ("aggregate", 7)):
        forward = index, score, key, [side, side], 1.0
        yield name, partial(torch.ops.psal.attend, *forward)
        out, log_mass = torch.ops.psal.attend(*forward)
        inputs = torch.ones_like(out), index, score, key, out, log_mass, [side, side], 1.0
        yield f"gradients of {name}", partial(torch.ops.psal.attend_backward, *inputs)
    scores = torch.ones_like(score), query, key, index, score, [7, 7], 0, 0
    yield "gradients of scores", partial(torch.ops.psal.score_backward, *scores)


def _cost_ratios(query: Tensor, key: Tensor) -> dict[str, float]:
    """Mean cost of the best matches over that of the exact ones, by what the search starts from."""
    query, key = query.float(), key.float()
    searches = {init: partial(patch_match, query, key, init=init, seed=SEED) for init in ("tree", "random")}
    return cost_ratios(query, key, searches, stride=max(1, query.shape[-1] // EXACT_QUERIES))


def tables(record: Record) -> list[Table]:
    """One table: times, bounds and their ratio; the searches' cost beside them."""
    device = ", ".join(record.settings["device"].values())
    costs = {"search, seeded": "tree", "search, paper's schedule": "random"}
    rows = []
    for cell in record.cells.values():
        for row in cell["ops"]:
            bound, seconds = row["bound"], row["seconds"]
            cost = cell["cost"][costs[row["op"]]] if row["op"] in costs else None
            rows.append([
                f"{cell['size']}², {cell['dtype']}", row["op"], number(1e3 * seconds),
                number(1e3 * bound) if bound else "–", number(seconds / bound) if bound else "–",
                number(cost) if cost else "",
            ])  # fmt: skip
    head = ["maps", "op", "milliseconds", "bound (modeled)", "ratio", "cost over exact"]
    return [Table(f"The layer on {device}", head, rows)]
