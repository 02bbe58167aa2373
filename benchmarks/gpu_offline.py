"""Compile the Triton kernels for real cards, without one: ``python -m benchmarks.gpu_offline``

Each run measures the Triton that is installed, and adds it to results/gpu_offline.json.
"""

import argparse
import importlib.metadata
import sys
from functools import partial
from pathlib import Path
from typing import Any

from psal.errors import UsageError
from psal.measure.machine import metadata
from psal.measure.quantities import Quantities
from psal.measure.record import Cell, Record
from psal.measure.table import quantity_tables
from psal.measure.terminal import show, track

TARGETS = ("sm_80", "sm_89", "sm_90", "sm_100", "gfx90a", "gfx942")
COMMAND = "python -m benchmarks.gpu_offline"


def measure(version: str, target: str) -> Cell:
    """Compile all default configurations for a target."""
    from benchmarks.gpu_kernels import compile_for, default_configurations, resources_of

    kernels: dict[str, dict[str, Any]] = {}
    for configuration in track(list(default_configurations()), target):
        kernels[configuration.name] = resources_of(compile_for(configuration, target), target)
    quantities = Quantities(f"Triton {version}, {target}")
    registers = [kernel["registers"] for kernel in kernels.values()]
    quantities.add("most registers per thread", registers, value=max(registers))
    floods = [kernel for name, kernel in kernels.items() if name.startswith("flood")]
    if "occupancy" in floods[0]:
        quantities.add("occupancy of the search", [100 * kernel["occupancy"] for kernel in floods], unit="%")
    stack = [kernel["stack"] for kernel in kernels.values()]
    quantities.add("largest stack of a thread", stack, unit="bytes", value=max(stack))
    return quantities.cell(kernels=kernels)


def main() -> None:
    """Compile, print the table and write results/gpu_offline.json."""
    parser = argparse.ArgumentParser(
        prog=COMMAND, description="Compile the Triton kernels for cards that need not be here."
    )
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder of the JSON file [results]")
    parser.add_argument("--overwrite", action="store_true", help="compile again with this Triton")
    parser.add_argument("--targets", nargs="+", choices=TARGETS, default=TARGETS, help="only these")
    arguments = parser.parse_args()
    try:
        version = importlib.metadata.version("triton")
    except importlib.metadata.PackageNotFoundError:
        sys.exit("error: Triton is not installed: pip install triton")
    try:
        record = Record.resume(arguments.out / "gpu_offline.json", {"patch_size": 7}, metadata(COMMAND, ["torch"]))
        for target in arguments.targets:
            name = f"triton {version}, {target}"
            if arguments.overwrite:
                record.cells.pop(name, None)
            record.measure_once(name, partial(measure, version, target))
    except (UsageError, OSError) as error:
        sys.exit(f"error: {error}")
    record.cells = dict(sorted(record.cells.items()))
    record.save()
    show(record, quantity_tables(record))
    print(f"written to {record.path}", file=sys.stderr)


if __name__ == "__main__":
    main()
