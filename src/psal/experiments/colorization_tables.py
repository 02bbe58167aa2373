"""Tables 4, 5 and 8 of the paper and its figure of loss against cost: which networks they compare."""

import statistics
from dataclasses import dataclass

from psal.experiments import paper
from psal.experiments.networks import Network, cells_of
from psal.measure.record import Record
from psal.measure.table import Table, number
from psal.models.attentions import label

SPLITS = {"val": "val", "holdout": "held-out"}  # what the networks are tested on, and its name in the tables


@dataclass(frozen=True)
class Comparison:
    """Networks of one table.

    Attributes:
        title: title of the table.
        networks: its rows.
        size: default side of the pictures.
        iterations: default number of training steps. Both are small enough for two cores.
    """

    title: str
    networks: tuple[Network, ...]
    size: int = 48
    iterations: int = 4000


def _same(*names: str) -> tuple[Network, ...]:
    return tuple(Network(name, name) for name in names)


COMPARISONS = {
    "neighbors": Comparison(
        "Table 4: PSAL with more neighbors, and with aggregation",
        _same("psal1", "psal3", "psal7", "psal15", "psal31", "psal-aggregate"),
        size=128,
        iterations=8000,
    ),
    "similarity": Comparison(
        "Table 5: full attention by squared distance and by dot product",
        _same("full-materialized", "full-dot"),
    ),
    "cost": Comparison(
        "Figure: loss against memory and operations",
        _same("full-stride3", "local", "linear", "performer", "reformer", "psal3", "psal-aggregate"),
    ),
    "swap": Comparison(
        "Table 8: one attention in training, another in the test",
        (
            *_same("psal1", "psal-aggregate"),
            Network("psal-aggregate", "psal1"),
            *_same("psal3"),
            Network("psal3", "psal1"),
            *_same("full-materialized"),
            *(Network("full-materialized", name) for name in ("psal1", "psal3", "psal-aggregate")),
            *_same("local"),
            Network("local", "psal1"),
        ),
        iterations=8000,
    ),
}


def seeds_of(network: Network, count: int) -> range:
    """Seeds a network is trained with: ``count`` for PSAL, one for the slower layers."""
    return range(count if network.trained.startswith("psal") else 1)


def losses(record: Record, network: Network, split: str) -> list[float]:
    """Loss of a network on a split, with each seed that has been measured."""
    return [cell[split]["loss"] for cell in cells_of(record, network)]


def tables(record: Record) -> list[Table]:
    """Loss of each network on each split, and cost of its attention layer."""
    name = record.settings["table"]
    splits = [split for split in SPLITS if split in record.cells["gray"]]
    swaps = any(network.trained != network.tested for network in COMPARISONS[name].networks)
    rows = []
    for network in COMPARISONS[name].networks:
        seeds = len(losses(record, network, "val"))
        if not seeds:  # not measured yet
            continue
        cost = record.cells[f"{network.tested} cost"]
        known = paper.COLORIZATION_LOSS[name].get(network)
        rows.append(
            [
                label(network.trained),
                label(network.tested),
                str(seeds),
                str(_count_below_gray(record, network)),
                *(_median_and_spread(losses(record, network, split)) for split in splits),
                *(_change_by_swap(record, network, split) for split in splits if swaps),
                number(cost["gigaflops"]),
                f"{cost['peak'] / 1e9:.3f}",
                number(cost["seconds"]),
                f"{known:.4f}" if known else "",
            ]
        )
    gray = [f"{record.cells['gray'][split]['loss']:.5f}" for split in splits]
    changes = [f"by the swap, {SPLITS[s]}" for s in splits if swaps]
    rows.append(["gray frame", "", "", "", *gray, *("" for _ in changes), "", "", "", ""])
    head = ["attention in training", "in the test", "seeds", "below gray", *(f"loss, {SPLITS[s]}" for s in splits)]
    head += changes
    return [Table(COMPARISONS[name].title, [*head, "10⁹ operations", "GB", "seconds", "loss in the paper"], rows)]


def _count_below_gray(record: Record, network: Network) -> int:
    """With how many seeds a network has a lower loss on val than the gray frames themselves."""
    gray = record.cells["gray"]["val"]["loss"]
    return sum(loss < gray for loss in losses(record, network, "val"))


def _change_by_swap(record: Record, network: Network, split: str) -> str:
    """By how much the loss is larger than with the layer of the training: median and range over seeds."""
    if network.trained == network.tested:
        return ""
    own = losses(record, Network(network.trained, network.trained), split)
    changes = [100 * (new / old - 1) for new, old in zip(losses(record, network, split), own, strict=False)]
    if not changes:
        return ""
    spread = f" ({min(changes):+.0f} to {max(changes):+.0f} %)" if len(changes) > 1 else ""
    return f"{statistics.median(changes):+.0f} %{spread}"


def _median_and_spread(found: list[float]) -> str:
    spread = f" ({min(found):.5f} to {max(found):.5f})" if len(found) > 1 else ""
    return f"{statistics.median(found):.5f}{spread}"
