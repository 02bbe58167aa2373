"""Distributed training: one process, or those that torchrun or ``fabric run`` started."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from lightning_fabric import Fabric
from torch import Tensor

from psal.errors import UsageError


def is_first_process() -> bool:
    """Return whether this process has rank 0, and so prints and writes for all."""
    return os.environ.get("RANK", "0") == "0"


@contextmanager
def processes(device: str, precision: str) -> Iterator[Fabric]:
    """Launch Fabric for a ``with`` block; leaving it waits for all processes."""
    world = int(os.environ.get("WORLD_SIZE", "1"))
    local = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    fabric = Fabric(
        accelerator=device,
        devices=local,
        num_nodes=world // local,
        strategy="ddp" if world > 1 else "auto",
        precision=precision,  # type: ignore[arg-type]
    )
    fabric.launch()
    try:
        yield fabric
        fabric.barrier()
    finally:
        if torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()  # otherwise gloo's threads abort the process at exit


def mean_over_processes(fabric: Fabric, value: float) -> float:
    """Return the mean of one number per process."""
    mean = fabric.all_reduce(torch.tensor(value, dtype=torch.float64, device=fabric.device))
    assert isinstance(mean, Tensor)
    return float(mean)


def _of_all_processes(fabric: Fabric, value: Any) -> list[Any]:
    return [fabric.broadcast(value, src=rank) for rank in range(fabric.world_size)]


def merge_lines(fabric: Fabric, lines: list[str]) -> list[str]:
    """Return the lines of all processes without duplicates."""
    return list(dict.fromkeys(line for own in _of_all_processes(fabric, lines) for line in own))


def check_agreement(fabric: Fabric, described: dict[str, Any]) -> None:
    """Check that all processes were started with the same settings.

    Raises:
        UsageError: in every process, if not.
    """
    first, *others = _of_all_processes(fabric, described)
    for rank, other in enumerate(others, 1):
        if differ := [name for name in first if other[name] != first[name]]:
            listed = ", ".join(f"{name} {other[name]}, not {first[name]}" for name in differ)
            raise UsageError(f"process {rank} was started with other settings than process 0: {listed}")
