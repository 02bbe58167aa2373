"""The most memory that something takes while it runs: of the process on the CPU, of the allocator on CUDA."""

import ctypes
import gc
import resource
from collections.abc import Callable
from pathlib import Path

import torch

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # numbers of glibc's malloc.h


def hand_memory_back() -> None:
    """From here on what is freed goes back to the system at once, where the C library is glibc: it no longer counts.

    Without this glibc keeps large blocks that were freed. Allocating gets slower, so time things before.
    """
    library = ctypes.CDLL(None)
    if hasattr(library, "mallopt") and hasattr(library, "malloc_trim"):
        library.mallopt(M_MMAP_THRESHOLD, 64 * 1024)
        library.mallopt(M_TRIM_THRESHOLD, 64 * 1024)
        library.malloc_trim(0)


def peak_of(run: Callable[[], object], device: torch.device) -> int:
    """Bytes that ``run`` takes at most beyond what is taken before it."""
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
    """The process's resident memory: its peak from here on, beyond what is resident now."""

    def __init__(self) -> None:
        self._status = Path("/proc/self/status")
        self._before = self._field("VmRSS") if self._status.exists() else _highest()
        self.restart()

    def restart(self) -> None:
        """Forget the peak so far, but not what was resident in the beginning."""
        if self._status.exists():
            Path("/proc/self/clear_refs").write_text("5")

    def bytes(self) -> int:
        """The peak beyond the beginning."""
        return (self._field("VmHWM") if self._status.exists() else _highest()) - self._before

    def _field(self, name: str) -> int:
        line = next(line for line in self._status.read_text().splitlines() if line.startswith(name + ":"))
        return int(line.split()[1]) * 1024


def _highest() -> int:
    """Where there is no /proc: the highest the process ever had, in bytes as macOS counts."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
