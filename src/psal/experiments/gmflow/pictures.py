"""Pictures of the experiment with GMFlow: flow fields side by side, and cost against size."""

from collections.abc import Mapping
from pathlib import Path

from torch import Tensor

from psal.data import davis
from psal.experiments.gmflow.attentions import build, label
from psal.experiments.gmflow.flow import colors, end_point_distance
from psal.experiments.gmflow.network import FlowNetwork
from psal.experiments.gmflow.tables import PSAL, Quantity, costs_of, is_computed, quality_cells, shown_size, sizes_of
from psal.experiments.plots import Cost, figure, legend, plot_growth, save, save_grid
from psal.measure.record import Record

SHOWN = ("exact4", "psal4")
COSTS: tuple[tuple[Quantity, Cost], ...] = (
    ("memory", Cost("attention_peak", 1e9, "memory of matching and propagation, GB")),
    ("memory", Cost("peak", 1e9, "memory of the whole network, GB")),
    ("time", Cost("attention_seconds", 1.0, "time of matching and propagation, s")),
)
BRIGHT_CHANGE = 2.0  # pixels that are drawn white in the picture of changes
MIN_BRIGHT_FLOW = 2.0  # pixels that get full color at least: less would show noise of standing cameras


def draw_flows(network: FlowNetwork, record: Record, pairs: Mapping[str, davis.Pair], path: Path) -> None:
    """Draw the flow of full attention, exact top-4 and PSAL 4, for three pairs of frames.

    PSAL changes the flow least on the first of them and most on the last; the second is the median.

    Args:
        network: with full attention.
        record: of the experiment.
        pairs: by sequence, three frames apart.
        path: the PNG to write.
    """
    size = sizes_of(record)[0]
    cells = quality_cells(record, size, 3)
    ranked = sorted(cells, key=lambda each: cells[each]["rows"][PSAL]["change"])
    chosen = {ranked[0]: "least", ranked[len(ranked) // 2]: "median", ranked[-1]: "most"}
    rows = {}
    for sequence, rank in chosen.items():
        frame, other = (
            davis.load_resized(file, *size)[None] for file in (pairs[sequence].frame, pairs[sequence].reference)
        )
        flows = {"Full attention": network(frame, other)}
        for attention in SHOWN:
            with network.swapped("both", build(attention)):
                flows[label(attention)] = network(frame, other)
        full, found = flows["Full attention"], flows[label("psal4")]
        largest = max(full.square().sum(1).sqrt().flatten().quantile(0.98).item(), MIN_BRIGHT_FLOW)
        images = {"frame": frame} | {title: colors(flow, largest) for title, flow in flows.items()}
        images["change by PSAL 4"] = _gray(end_point_distance(found, full) / BRIGHT_CHANGE)
        rows[f"{sequence} ({rank})"] = images
    save_grid(rows, path)


def _gray(x: Tensor) -> Tensor:
    """``(B, H, W)`` to ``(B, 3, H, W)`` in 0..1."""
    return x.clamp(max=1)[:, None].expand(-1, 3, -1, -1)


def plot_cost(record: Record, path: Path) -> None:
    """Plot memory and time, as far as measured, against the number of pixels; hollow markers are extrapolated."""
    sizes = sizes_of(record)
    pixels = [height * width for height, width in sizes]
    names = record.settings["cost_attentions"]
    measured_costs = [cost for cost in COSTS if any(costs_of(record, name, cost[0]) for name in names)]
    canvas, axes = figure(len(measured_costs))
    for axis, (quantity, cost) in zip(axes, measured_costs, strict=True):
        for name in names:
            cells = costs_of(record, name, quantity)
            measured = [height * width for height, width in cells]
            values = [cell[cost.key] / cost.unit for cell in cells.values()]
            plot_growth(axis, name, label(name), measured, values, [is_computed(cell) for cell in cells.values()])
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_xticks(pixels, [shown_size(size).replace(" (", "\n(") for size in sizes], fontsize=7)
        axis.minorticks_off()
        axis.set_title(cost.title, fontsize=10)
    legend(axes)
    save(canvas, path)
