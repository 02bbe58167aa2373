"""Compile the Triton kernels for real cards, without one: ``python -m benchmarks.gpu_offline``

Each run measures the Triton that is installed, and adds it to results/gpu_offline.json.
"""

import argparse
import importlib.metadata
import sys
from pathlib import Path
from typing import Any

from psal.errors import UsageError
from psal.measure.machine import metadata
from psal.measure.quantities import Quantities
from psal.measure.record import Cell, Record
from psal.measure.table import quantity_tables
from psal.measure.terminal import show, track

COMMAND = "python -m benchmarks.gpu_offline"


def measure(version: str) -> Cell:
    """Compile all default configurations for all targets."""
    from benchmarks.gpu_kernels import TARGETS, compile_for, default_configurations, resources_of

    found: dict[str, dict[str, Any]] = {target: {} for target in TARGETS}
    configurations = list(default_configurations())
    for target in track(list(TARGETS), "targets"):
        for configuration in configurations:
            found[target][configuration.name] = resources_of(compile_for(configuration, target), target)
    quantities = Quantities(f"Triton {version}")
    for target, kernels in found.items():
        registers = [kernel["registers"] for kernel in kernels.values()]
        quantities.add(f"{target}: registers per thread", registers, value=max(registers))
        if "occupancy" in next(iter(kernels.values())):
            floods = [kernel for name, kernel in kernels.items() if name.startswith("flood")]
            occupancy = [100 * kernel["occupancy"] for kernel in floods]
            quantities.add(f"{target}: occupancy of the search", occupancy, unit="%")
        spills = [kernel["stack"] for kernel in kernels.values()]
        quantities.add(f"{target}: stack of a thread", spills, unit="bytes", value=max(spills))
    return quantities.cell(kernels=found)


def main() -> None:
    """Compile, print the table and write results/gpu_offline.json."""
    parser = argparse.ArgumentParser(
        prog=COMMAND, description="Compile the Triton kernels for cards that need not be here."
    )
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder of the JSON file [results]")
    parser.add_argument("--overwrite", action="store_true", help="compile again with this Triton")
    arguments = parser.parse_args()
    try:
        version = importlib.metadata.version("triton")
    except importlib.metadata.PackageNotFoundError:
        sys.exit("error: Triton is not installed: pip install triton")
    try:
        record = Record.resume(arguments.out / "gpu_offline.json", {"patch_size": 7}, metadata(COMMAND, ["torch"]))
        name = f"triton {version}"
        if arguments.overwrite:
            record.cells.pop(name, None)
        record.measure_once(name, lambda: measure(version))
    except (UsageError, OSError) as error:
        sys.exit(f"error: {error}")
    record.cells = dict(sorted(record.cells.items()))
    record.save()
    show(record, quantity_tables(record))
    print(f"written to {record.path}", file=sys.stderr)


if __name__ == "__main__":
    main()
