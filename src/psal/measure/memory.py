"""Peak memory: resident memory of a process on the CPU, allocated memory on CUDA."""

import contextlib
import ctypes
import gc
import resource
import sys
from collections.abc import Callable
from pathlib import Path

import torch

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # constants of glibc's malloc.h
MAX_KEPT_BYTES = 64 * 1024
STATUS = Path("/proc/self/status")  # Linux only


def return_freed_memory() -> None:
    """Make glibc return freed blocks to the system at once, so that they no longer count as resident.

    Does nothing with other C libraries. Allocation gets slower: take times in a process that has not called this.
    """
    library = ctypes.CDLL(None)
    if hasattr(library, "mallopt") and hasattr(library, "malloc_trim"):
        library.mallopt(M_MMAP_THRESHOLD, MAX_KEPT_BYTES)
        library.mallopt(M_TRIM_THRESHOLD, MAX_KEPT_BYTES)
        library.malloc_trim(0)


def peak_of(run: Callable[[], object], device: torch.device) -> int:
    """Peak memory of ``run()`` in bytes, beyond what is in use before it."""
    gc.collect()
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        run()
        torch.cuda.synchronize(device)
        return torch.cuda.max_memory_allocated(device) - before
    peak = PeakResident()
    run()
    return peak.bytes()


class PeakResident:
    """Peak resident memory of this process since construction, beyond what was resident then."""

    def __init__(self) -> None:
        self._before = _status_field("VmRSS") if STATUS.exists() else peak_of_process()
        self.restart()

    def restart(self) -> None:
        """Forget the peak so far; the baseline stays that of the construction."""
        if STATUS.exists():
            Path("/proc/self/clear_refs").write_text("5")  # resets VmHWM

    def bytes(self) -> int:
        """The peak since the last restart, minus the baseline."""
        return peak_of_process() - self._before


def peak_of_process() -> int:
    """Peak resident memory of this process over its whole life, or since :meth:`PeakResident.restart`, in bytes."""
    if STATUS.exists():  # the usage below would include what the parent held when it started this process
        return _status_field("VmHWM")
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _status_field(name: str) -> int:
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith(name + ":"))
    return int(line.split()[1]) * 1024


def memory_of_tree(pid: int) -> int:
    """Proportional set size (PSS) of a process and its direct children, in bytes. Shared pages count once. Linux only.

    Args:
        pid: id of the parent process.
    """
    total = 0
    for process in [pid, *_children_of(pid)]:
        with contextlib.suppress(OSError):  # the process may just have ended
            lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
            total += sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
    return total


def _children_of(pid: int) -> list[int]:
    found = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for path in found for child in path.read_text().split()]
