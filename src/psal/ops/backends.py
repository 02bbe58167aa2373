"""Which backend runs a call, and why the others do not."""

import logging
import warnings
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import NamedTuple

import torch
from torch import Tensor

from psal.options import BACKENDS, Similarity

MIN_TRITON = (3, 6)
MAX_TRITON_NEIGHBORS = 32  # the kernels keep a query's matches in registers
HALF_TYPES = (torch.float16, torch.bfloat16)

_log = logging.getLogger("psal")
_warned: set[str] = set()


class BackendStatus(NamedTuple):
    """Whether a backend can run here.

    Attributes:
        name: "native", "triton" or "reference".
        available: whether it can run.
        reason: what it runs on, or why it cannot run.
    """

    name: str
    available: bool
    reason: str


def backends() -> list[BackendStatus]:
    """List all backends, with the reason for those that cannot run here.

    >>> [status.name for status in backends()]
    ['native', 'triton', 'reference']
    """
    missing = TRITON_OBSTACLE
    if missing is None and not torch.cuda.is_available():
        missing = "torch finds no CUDA or ROCm device"
    return [
        BackendStatus("native", True, "compiled kernels for tensors on the CPU"),
        BackendStatus("triton", missing is None, missing or "kernels for tensors on CUDA and ROCm devices"),
        BackendStatus("reference", True, "plain torch, for tensors on any device"),
    ]


def choose_backend(
    x: Tensor, similarity: Similarity = "l2", backend: str | None = None, neighbors: int | None = None
) -> str:
    """Choose the backend that was asked for, or else the first that can run the call.

    Args:
        x: one of the maps.
        similarity: of the search.
        backend: the one that was asked for, or None.
        neighbors: k of a search; None for other calls.

    Raises:
        ValueError: if the backend that was asked for cannot run the call.
    """
    if backend is not None:
        if obstacle := _obstacle(backend, x, similarity, neighbors):
            raise ValueError(f"backend={backend!r} cannot run {obstacle}: use backend='reference' or None")
        return backend
    passed_over: dict[str, str] = {}
    for name in BACKENDS:
        obstacle = _obstacle(name, x, similarity, neighbors)
        if obstacle is None:
            _report(name, x, similarity, passed_over)
            return name
        passed_over[name] = obstacle
    raise AssertionError("the reference runs everything")


def takes_half_types(backend: str) -> bool:
    """Whether a backend reads float16 and bfloat16 itself; others get float32."""
    return backend == "triton"


def _obstacle(backend: str, x: Tensor, similarity: Similarity, neighbors: int | None) -> str | None:
    """Return what a backend cannot run, or None."""
    if backend == "reference":
        return None
    if callable(similarity):
        return "a callable similarity"
    if backend == "native":
        return None if x.device.type in ("cpu", "meta") else f"tensors on {x.device}"
    if x.device.type != "cuda":
        return f"tensors on {x.device}"
    if TRITON_OBSTACLE:
        return f"here, as {TRITON_OBSTACLE}"
    if neighbors is not None and neighbors > MAX_TRITON_NEIGHBORS:
        return f"more than {MAX_TRITON_NEIGHBORS} neighbors"
    return None


def _report(chosen: str, x: Tensor, similarity: Similarity, passed_over: dict[str, str]) -> None:
    """Log why backends were passed over, and warn once where the slow one runs for want of a kernel."""
    if torch.compiler.is_compiling():
        return
    for name, obstacle in passed_over.items():
        _log.debug("backend %s was passed over: it cannot run %s", name, obstacle)
    if chosen == "reference" and not callable(similarity):
        kernel = "triton" if x.device.type == "cuda" else "native"
        if passed_over[kernel] not in _warned:
            _warned.add(passed_over[kernel])
            warnings.warn(
                f"psal computes in plain torch, many times slower than its kernels: backend {kernel!r} cannot run "
                f"{passed_over[kernel]}. backend='reference' chooses this without a warning.",
                stacklevel=6,  # the caller of patch_match
            )


def _triton_obstacle() -> str | None:
    """Return why Triton's kernels cannot be compiled, or None. Reads the version without importing Triton."""
    if find_spec("triton") is None:
        return "Triton is not installed"
    for package in ("triton", "pytorch-triton", "pytorch-triton-rocm", "triton-rocm"):
        try:
            found = version(package)
        except PackageNotFoundError:
            continue
        if tuple(map(int, found.split("+")[0].split(".")[:2])) < MIN_TRITON:
            return f"Triton {found} is too old: {'.'.join(map(str, MIN_TRITON))} or later is needed"
    return None


TRITON_OBSTACLE = _triton_obstacle()
