"""Two threads against one while another process keeps a core busy: threads that wait should sleep, not spin."""

import contextlib
import subprocess
import sys
from collections.abc import Iterator

from benchmarks.editing.beds import eight_holes
from benchmarks.editing.inpaint_comparison import fill_in_fresh_process
from benchmarks.editing.photographs import Photographs
from psal.measure.quantities import Quantities
from psal.measure.record import Cell

BUSY = """
import os
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
print("running", flush=True)
while True:
    pass
"""


def busy_machine(photographs: Photographs) -> Cell:
    """Time and CPU time on two threads, divided by those on one, without and with a busy process on the same cores."""
    picture = next(eight_holes(photographs))
    found = Quantities("inpaint, two threads on two cores")
    for when, other_process in (("idle", contextlib.nullcontext), ("one core busy", busy_process)):
        with other_process():
            one, two = (fill_in_fresh_process(name, [picture])[1] for name in ("psal", "psal_two_threads"))
        for title, key in (("time", "seconds"), ("CPU time", "cpu_seconds")):
            found.add(f"{title}, {when}", [two[key][0] / one[key][0]], against="one thread", unit="×")
    return found.cell()


@contextlib.contextmanager
def busy_process() -> Iterator["subprocess.Popen[bytes]"]:
    """Keep one of the first two cores busy."""
    with subprocess.Popen([sys.executable, "-c", BUSY], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield process
        finally:
            process.kill()
