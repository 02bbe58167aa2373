"""Tables of each results file, by name."""

from collections.abc import Callable

from psal.experiments import (
    colorization_tables,
    layer_speed,
    memory,
    mutants_tables,
    reconstruction,
    seeding_tables,
    super_resolution_large,
    super_resolution_tables,
)
from psal.experiments.gmflow import tables as gmflow_tables
from psal.experiments.inpainting import guide as inpainting_guide
from psal.experiments.inpainting import large as inpainting_large
from psal.experiments.inpainting import layers as inpainting_layers
from psal.experiments.inpainting import tables as inpainting_tables
from psal.measure.comparison import benchmark_tables
from psal.measure.record import Record
from psal.measure.table import Table

EXPERIMENTS: dict[str, Callable[[Record], list[Table]]] = {
    "gmflow": gmflow_tables.tables,
    "inpainting_guide": inpainting_guide.tables,
    "inpainting_large": inpainting_large.tables,
    "inpainting_layers": inpainting_layers.tables,
    **{f"inpainting_{name}": inpainting_tables.tables for name in inpainting_tables.TITLES},
    "layer_speed": layer_speed.tables,
    "memory": memory.tables,
    "mutants": mutants_tables.tables,
    "reconstruction": reconstruction.tables,
    "seeding": seeding_tables.tables,
    "super_resolution": super_resolution_tables.tables,
    "super_resolution_large": super_resolution_large.tables,
    **{f"colorization_{name}": colorization_tables.tables for name in colorization_tables.COMPARISONS},
}


def tables_of(record: Record) -> list[Table]:
    """Tables of a results file: those of its experiment, or of a benchmark.

    A name may go on after that of the experiment, as in ``super_resolution_set14``.
    """
    stem = record.path.stem
    names = [name for name in EXPERIMENTS if stem == name or stem.startswith(f"{name}_")]
    return EXPERIMENTS[max(names, key=len)](record) if names else benchmark_tables(record)
