"""Time and peak memory of one edit, measured in a fresh process."""

import psal
from psal.measure.memory import peak_of_process
from psal.measure.timing import seconds_of


def edit_cost(function: str, files: list[str]) -> dict[str, float]:
    """Edit a photograph, from the files to the result in memory. Call this in a fresh process.

    Args:
        function: name of an edit in :mod:`psal`.
        files: its pictures.

    Returns:
        ``seconds``, and ``peak``: bytes of the whole process.
    """
    edit = getattr(psal, function)
    return {"seconds": seconds_of(lambda: edit(*files, seed=0)), "peak": peak_of_process()}
