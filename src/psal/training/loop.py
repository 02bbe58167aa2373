"""The training loop of all tasks: averaged weights, checkpoints, several processes, the same bits after a stop."""

import math
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import torch
from lightning_fabric import Fabric
from safetensors.torch import save as save_weights
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel

from psal.errors import UsageError
from psal.training import checkpoint
from psal.training.log import Log
from psal.training.task import Task
from psal.whole_files import check_folder_is_writable, write_whole

WEIGHTS = "model.safetensors"
MAY_CHANGE = ("iterations", "checkpoint_every", "log_every", "look_every")  # between a run and its continuation


@dataclass(frozen=True)
class Settings:
    """How a task is trained.

    Attributes:
        iterations: steps in all.
        batch: examples a step and process.
        learning_rate: of Adam.
        average: steps over which the weights that are written are averaged, exponentially: with small batches those of
            the last step alone are noisy.
        seed: of the weights, the examples and the searches.
        precision: of Fabric, as "32-true" or "bf16-mixed".
        device: "cpu" or "cuda".
        checkpoint_every, log_every, look_every: steps between checkpoints, rows of the log, and pictures.
    """

    iterations: int
    batch: int = 1
    learning_rate: float = 1e-3
    average: int = 1000
    seed: int = 0
    precision: str = "32-true"
    device: str = "cpu"
    checkpoint_every: int = 500
    log_every: int = 50
    look_every: int = 1000


@dataclass(frozen=True)
class Outcome:
    """What came of a run.

    Attributes:
        resumed_from, steps: done before it, and by now.
        loss: the last that was logged.
        seconds_a_step: mean time of a step in this run; not a number if it had none.
        complaints: a line for each file that could not be used.
    """

    resumed_from: int
    steps: int
    loss: float
    seconds_a_step: float
    complaints: list[str]


def train(
    task: Task, settings: Settings, out: Path, progress: Callable[[int, float], None] = lambda step, loss: None
) -> Outcome:
    """Train a task, or go on where a run in the folder ``out`` stopped: on a CPU with the same bits.

    Step s of process r of w takes the examples (s · w + r) · batch and following, and draws its random numbers from a
    seed made of the run's seed, s and r: nothing of a generator's state has to be kept.

    Args:
        task: what is trained.
        settings: how.
        out: folder of the run: checkpoint.pt, log.csv, tensorboard/, look_*.png, and in the end model.safetensors.
        progress: called with the step and the loss.

    Raises:
        UsageError: if the folder holds a run with other settings.
        RuntimeError: if the loss is not a number any more.
    """
    fabric = _fabric(settings)
    fabric.launch()
    if fabric.is_global_zero:
        check_folder_is_writable(out)
    fabric.barrier()
    described = {"task": task.name, **task.settings, **asdict(settings), "processes": fabric.world_size}
    state = checkpoint.load(out)
    _check_same(out, state, described)

    torch.manual_seed(settings.seed)
    network = task.build()
    if state is not None:
        network.load_state_dict(state["model"])
    model, optimizer = fabric.setup(network, torch.optim.Adam(network.parameters(), lr=settings.learning_rate))
    average = AveragedModel(network, multi_avg_fn=_averaging(settings.average))
    if state is not None:
        optimizer.load_state_dict(state["optimizer"])
        average.load_state_dict(state["average"])
    start = state["step"] if state else 0
    spent, since_row = (state["seconds"], state["since_row"]) if state else (0.0, [])
    loss_shown = state["loss"] if state else math.nan
    begun = time.perf_counter() - spent

    def keep(step: int) -> None:
        if fabric.is_global_zero:
            checkpoint.save(
                out,
                {
                    "step": step, "settings": described, "model": network.state_dict(),
                    "average": average.state_dict(), "optimizer": optimizer.state_dict(),
                    "seconds": time.perf_counter() - begun, "since_row": since_row, "loss": loss_shown,
                },
            )  # fmt: skip

    with Log(out, start) if fabric.is_global_zero else _Silent() as log:
        for step in range(start, settings.iterations):
            since_row.append(_step(fabric, task, model, optimizer, settings, step))
            average.update_parameters(network)
            done = step + 1
            if done % settings.log_every == 0 or done == settings.iterations:
                loss_shown = _mean_over_processes(fabric, sum(since_row) / len(since_row))
                since_row = []
                log.add(done, loss_shown, time.perf_counter() - begun)
            if done % settings.look_every == 0 or done == settings.iterations:
                _look(fabric, task, average.module, out, done)
            if done % settings.checkpoint_every == 0 or done == settings.iterations:
                keep(done)
            progress(done, loss_shown)
    if fabric.is_global_zero:
        weights = {name: x.contiguous() for name, x in average.module.state_dict().items()}
        write_whole(out / WEIGHTS, save_weights(weights, {name: str(value) for name, value in described.items()}))
    done = max(start, settings.iterations)
    seconds = (time.perf_counter() - begun - spent) / (done - start) if done > start else math.nan
    return Outcome(start, done, loss_shown, seconds, task.complaints())


def _step(fabric: Fabric, task: Task, model: nn.Module, optimizer: Any, settings: Settings, step: int) -> float:
    place = step * fabric.world_size + fabric.global_rank
    torch.manual_seed(settings.seed * 2**32 + place)
    numbers = range(place * settings.batch, (place + 1) * settings.batch)
    batch = [x.to(fabric.device) for x in task.examples(numbers)]
    optimizer.zero_grad()
    loss = task.loss(model, batch)
    fabric.backward(loss)
    optimizer.step()
    value = loss.item()
    if not math.isfinite(value):
        raise RuntimeError(f"the loss is {value} in step {step + 1}: lower the learning rate")
    return value


def _averaging(steps: int) -> Callable[[Any, Any, Tensor | int], None]:
    """The plain mean of the first so many steps, then one that forgets: for :class:`AveragedModel`."""

    @torch.no_grad()
    def update(averaged: Any, current: Any, count: Tensor | int) -> None:
        share = max(1 / steps, 1 / (int(count) + 1))
        for mean, value in zip(averaged, current, strict=True):
            mean.lerp_(value, share)

    return update


def _mean_over_processes(fabric: Fabric, value: float) -> float:
    mean = fabric.all_reduce(torch.tensor(value, dtype=torch.float64))
    assert isinstance(mean, Tensor)
    return float(mean)


def _look(fabric: Fabric, task: Task, network: nn.Module, out: Path, step: int) -> None:
    if not fabric.is_global_zero:
        return
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        picture = task.look(network)
    buffer = BytesIO()
    picture.save(buffer, "PNG")
    write_whole(out / f"look_{step:06d}.png", buffer.getvalue())


def _fabric(settings: Settings) -> Fabric:
    """One process, or those that torchrun or ``fabric run`` started."""
    processes = int(os.environ.get("WORLD_SIZE", "1"))
    local = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    return Fabric(
        accelerator=settings.device,
        devices=local,
        num_nodes=processes // local,
        strategy="ddp" if processes > 1 else "auto",
        precision=settings.precision,  # type: ignore[arg-type]
    )


def _check_same(out: Path, state: dict[str, Any] | None, described: dict[str, Any]) -> None:
    if state is None:
        return
    before = state["settings"]
    differ = [name for name in described if name not in MAY_CHANGE and before.get(name) != described[name]]
    if differ:
        listed = ", ".join(f"{name} {before.get(name)}, not {described[name]}" for name in differ)
        raise UsageError(f"{out} holds a run with {listed}: choose another folder, or the same settings to go on")


class _Silent:
    """The log of a process that is not the first."""

    def add(self, step: int, loss: float, seconds: float) -> None:
        pass

    def __enter__(self) -> "_Silent":
        return self

    def __exit__(self, *_: object) -> None:
        pass
