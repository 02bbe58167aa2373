"""Cost of the inpainting network's attention layer alone, as the maps grow."""

from dataclasses import dataclass
from typing import Any

from psal.experiments.layer_cost import LayerSetting
from psal.experiments.memory import MemoryExperiment, cost_tables
from psal.measure.record import Record
from psal.measure.table import Table
from psal.models.inpainting.attentions import PATCH_SIZE, label

LAYERS = ("contextual-materialized", "contextual", "psal3")
CHANNELS = 128  # of the network in the paper


@dataclass(frozen=True)
class InpaintingLayersExperiment(MemoryExperiment):
    """Time, memory and operations of contextual attention and PSAL 3 at several sizes, with 128 channels."""

    name = "inpainting_layers"

    @staticmethod
    def label(name: str) -> str:
        return label(name)

    @property
    def settings(self) -> dict[str, Any]:
        return super().settings | {"channels": CHANNELS}

    def _cases(self) -> list[LayerSetting]:
        return [
            LayerSetting(
                name, size, CHANNELS, backward, PATCH_SIZE, threads=self.threads, device=self.device, inpainting=True
            )
            for name in self.layers
            for backward in (False, True)
            for size in sorted(self.sizes)
        ]


def tables(record: Record) -> list[Table]:
    """Memory, time and operations by layer and size."""
    return cost_tables(record, label)
