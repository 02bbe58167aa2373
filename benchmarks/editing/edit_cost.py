"""Time and peak memory of one edit, measured in a fresh process."""

import time
from typing import Any

import psal
from psal.measure.memory import peak_of_process
from psal.measure.process import run_in_fresh_process
from psal.measure.quantities import Quantities
from psal.measure.timing import timed


def edit_cost(function: str, files: list[str], options: dict[str, Any]) -> dict[str, float]:
    """Edit a photograph, from the files to the result in memory. Call this in a fresh process.

    Args:
        function: name of an edit in :mod:`psal`.
        files: its pictures.
        options: its further arguments.

    Returns:
        ``seconds``; ``cpu_seconds`` of all threads; ``peak``, bytes of the whole process; ``megapixels`` of the result.
    """
    edit = getattr(psal, function)
    start = time.process_time()
    seconds, result = timed(lambda: edit(*files, seed=0, **options))
    cpu_seconds = time.process_time() - start
    height, width = result.pixels.shape[:2]
    return {
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
        "peak": peak_of_process(),
        "megapixels": height * width / 1e6,
    }


def measured_edit(label: str, function: str, files: list[str], **options: Any) -> tuple[Quantities, dict[str, float]]:
    """Time and peak memory of an edit as quantities, and all that :func:`edit_cost` returned."""
    cost = run_in_fresh_process(edit_cost, function, files, options, label=label)
    found = Quantities(label)
    found.add("time", [cost["seconds"]], unit="s")
    found.add("peak memory", [cost["peak"] / 1e9], unit="GB")
    return found, cost
