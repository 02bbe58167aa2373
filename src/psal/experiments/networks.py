"""Networks of a comparison, by the attention they are trained with and the attention they are tested with."""

from collections.abc import Callable
from itertools import count, takewhile
from typing import NamedTuple

from psal.measure.record import Cell, Record


class Network(NamedTuple):
    """A network that may be tested with another attention than the one it was trained with."""

    trained: str
    tested: str

    def title(self, label: Callable[[str], str]) -> str:
        """Name it in tables and plots, by the labels of its attentions."""
        if self.trained == self.tested:
            return label(self.trained)
        return f"{label(self.trained)} → {label(self.tested)}"


def cell_name(network: Network, seed: int) -> str:
    """Name of a network's cell in the record."""
    return f"{network.trained} {network.tested} {seed}"


def cells_of(record: Record, network: Network) -> list[Cell]:
    """Cells of a network, one for each seed that has been measured."""
    names = takewhile(record.cells.__contains__, (cell_name(network, seed) for seed in count()))
    return [record.cells[name] for name in names]
