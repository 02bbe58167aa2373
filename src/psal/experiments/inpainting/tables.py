"""Tables of the inpainting experiment."""

import statistics

from psal.experiments import paper
from psal.experiments.inpainting.metrics import METRICS, difference, summary
from psal.experiments.networks import Network, cells_of
from psal.measure.record import Record
from psal.measure.table import Table
from psal.models.inpainting.attentions import label

NETWORKS = (
    Network("contextual", "contextual"),
    Network("psal3", "psal3"),
    Network("contextual", "psal3"),
    Network("contextual", "none"),
    Network("none", "none"),
)
WITHOUT_TRAINING = {"patches": "psal.inpaint", "telea": "OpenCV's Telea"}
TITLES = {
    "scenes": "photographs with masks of their own",
    "rectangles": "random rectangles",
    "freeform": "random strokes",
}
BASELINE = Network("contextual", "contextual")


def title(network: Network) -> str:
    """Name a network in the tables.

    >>> title(Network("none", "none")), title(Network("contextual", "none"))
    ('No attention branch', 'Contextual attention → No attention')
    """
    return "No attention branch" if network.trained == "none" else network.title(label)


def tables(record: Record) -> list[Table]:
    """Metrics of each method with their intervals, and how far the networks are from contextual attention."""
    metrics = [name for name in METRICS if name != "lpips" or record.settings["lpips"]]
    heads = [METRICS[name].title for name in metrics]
    rows = []
    for network in NETWORKS:
        if found := scores_of(record, network):
            seeds = str(len(cells_of(record, network)))
            rows.append([title(network), seeds, *(summary(name, found[name]) for name in metrics)])
    for name, method in WITHOUT_TRAINING.items():
        if name in record.cells:
            found = record.cells[name]["scores"]
            rows.append([method, "", *(summary(metric, found[metric]) for metric in metrics)])
    for attention, values in paper.INPAINTING.items():
        rows.append([f"{attention}, in the paper", "", *(_paper_value(name, values) for name in metrics)])
    shown = f"Table 6, {record.settings['pictures']} {TITLES[record.settings['set']]}: mean (95 % interval)"
    return [Table(shown, ["attention", "seeds", *heads], rows), *_differences(record, metrics)]


def scores_of(record: Record, network: Network) -> dict[str, list[float]]:
    """Metrics of a network by picture, each the mean over the seeds that were measured; empty if there are none."""
    cells = [cell["scores"] for cell in cells_of(record, network)]
    if not cells:
        return {}
    return {
        name: [statistics.fmean(values) for values in zip(*(cell[name] for cell in cells), strict=True)]
        for name in cells[0]
    }


def _paper_value(name: str, values: dict[str, float]) -> str:
    return f"{values[name]:.1f}" if name in values else ""


def _differences(record: Record, metrics: list[str]) -> list[Table]:
    """Difference of each network to the one with contextual attention, picture by picture."""
    baseline = scores_of(record, BASELINE)
    rows = []
    for network in NETWORKS:
        found = scores_of(record, network)
        if not baseline or not found or network == BASELINE:
            continue
        rows.append([title(network), *(difference(name, found[name], baseline[name]) for name in metrics)])
    if not rows:
        return []
    heads = [METRICS[name].title for name in metrics]
    return [Table(f"Difference to {title(BASELINE).lower()}: mean (95 % interval)", ["attention", *heads], rows)]
