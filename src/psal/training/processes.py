"""The processes that train together: one, or those that torchrun or ``fabric run`` started."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from lightning_fabric import Fabric
from torch import Tensor

from psal.errors import UsageError


def is_first_process() -> bool:
    """Whether this process is to speak: the only one, or the first of those that torchrun or ``fabric run`` started."""
    return os.environ.get("RANK", "0") == "0"


@contextmanager
def processes(device: str, precision: str) -> Iterator[Fabric]:
    """Bring them together for the time of a ``with`` block; they part when all have come to its end."""
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
            torch.distributed.destroy_process_group()  # or gloo's threads abort the process at its end


def mean_over_processes(fabric: Fabric, value: float) -> float:
    """The mean of a number that each has."""
    mean = fabric.all_reduce(torch.tensor(value, dtype=torch.float64, device=fabric.device))
    assert isinstance(mean, Tensor)
    return float(mean)


def _of_all_processes(fabric: Fabric, value: Any) -> list[Any]:
    return [fabric.broadcast(value, src=rank) for rank in range(fabric.world_size)]


def together(fabric: Fabric, lines: list[str]) -> list[str]:
    """The lines of all processes, each once."""
    return list(dict.fromkeys(line for own in _of_all_processes(fabric, lines) for line in own))


def check_agreement(fabric: Fabric, described: dict[str, Any]) -> None:
    """See that all were started alike.

    Raises:
        UsageError: if not, in all of them.
    """
    first, *others = _of_all_processes(fabric, described)
    for rank, other in enumerate(others, 1):
        if differ := [name for name in first if other[name] != first[name]]:
            listed = ", ".join(f"{name} {other[name]}, not {first[name]}" for name in differ)
            raise UsageError(f"process {rank} was started with {listed}, unlike the first one")
