"""The training loop of all tasks: averaged weights, checkpoints, several processes, the same bits after a stop."""

import math
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
from psal.io.atomic import check_folder_is_writable, write_atomically
from psal.training import checkpoint
from psal.training.log import Log
from psal.training.processes import check_agreement, mean_over_processes, processes, together
from psal.training.task import Task

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

    Raises:
        UsageError: if the learning rate is not above 0, or not finite.
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

    def __post_init__(self) -> None:
        if not 0 < self.learning_rate < math.inf:
            raise UsageError(f"the learning rate must be above 0 and finite, got {self.learning_rate}")


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

    Step s of process r of w takes the examples (s · w + r) · batch and following, one after the other, each with random
    numbers from a seed made of the run's seed and the example's number. So nothing of a generator's state has to be
    kept, and a step does not depend on how its examples are spread over processes.

    Args:
        task: what is trained.
        settings: how.
        out: folder of the run: checkpoint.pt, log.csv, tensorboard/, look_*.png, and in the end model.safetensors.
        progress: called with the step and the loss.

    Raises:
        UsageError: if the folder holds a run with other settings or more steps, or if the loss or its gradient is not a
            number any more.
    """
    with processes(settings.device, settings.precision) as fabric:
        return _train(fabric, task, settings, out, progress)


def _train(
    fabric: Fabric, task: Task, settings: Settings, out: Path, progress: Callable[[int, float], None]
) -> Outcome:
    if fabric.is_global_zero:
        check_folder_is_writable(out)
    fabric.barrier()
    described = {"task": task.name, **task.settings, **asdict(settings), "processes": fabric.world_size}
    check_agreement(fabric, described)
    state = fabric.broadcast(checkpoint.load(out) if fabric.is_global_zero else None)  # other machines may not see it
    _check_same(out, state, described)

    torch.manual_seed(settings.seed)
    network = task.build()
    model, optimizer = fabric.setup(network, torch.optim.Adam(network.parameters(), lr=settings.learning_rate))
    average = AveragedModel(network, multi_avg_fn=_averaging(settings.average))
    if state is not None:  # after the setup, which brings all to the precision
        network.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        average.load_state_dict(state["average"])
    start = state["step"] if state else 0
    spent, since_row = (state["seconds"], state["since_row"]) if state else (0.0, [])
    loss_shown = state["loss"] if state else math.nan
    complaints = state["complaints"] if state else []
    begun = time.perf_counter() - spent

    def keep(step: int) -> None:
        nonlocal complaints
        complaints = together(fabric, complaints + task.complaints())
        if fabric.is_global_zero:
            checkpoint.save(
                out,
                {
                    "step": step, "settings": described, "model": network.state_dict(),
                    "average": average.state_dict(), "optimizer": optimizer.state_dict(),
                    "seconds": time.perf_counter() - begun, "since_row": since_row, "loss": loss_shown,
                    "complaints": complaints,
                },
            )  # fmt: skip

    with Log(out, start) if fabric.is_global_zero and start < settings.iterations else _Silent() as log:
        for step in range(start, settings.iterations):
            since_row.append(_step(fabric, task, model, optimizer, settings, step))
            average.update_parameters(network)
            done = step + 1
            if done % settings.log_every == 0 or done == settings.iterations:
                loss_shown, since_row = _mean(since_row, loss_shown), []
                log.add(done, loss_shown, time.perf_counter() - begun)
            if done % settings.checkpoint_every == 0 or done == settings.iterations:
                keep(done)
            if done % settings.look_every == 0 or done == settings.iterations:
                _look(fabric, task, average.module, out, done)
            progress(done, _mean(since_row, loss_shown))
    if fabric.is_global_zero:
        weights = {name: x.contiguous() for name, x in average.module.state_dict().items()}
        write_atomically(out / WEIGHTS, save_weights(weights, {name: str(value) for name, value in described.items()}))
    done = settings.iterations
    seconds = (time.perf_counter() - begun - spent) / (done - start) if done > start else math.nan
    return Outcome(start, done, _mean(since_row, loss_shown), seconds, complaints)


def _step(fabric: Fabric, task: Task, model: nn.Module, optimizer: Any, settings: Settings, step: int) -> float:
    """One step of all processes; returns the mean loss of their examples."""
    first = (step * fabric.world_size + fabric.global_rank) * settings.batch
    numbers = range(first, first + settings.batch)
    optimizer.zero_grad()
    total = 0.0
    for number in numbers:
        torch.manual_seed(settings.seed * 2**32 + number)
        example = [x.to(fabric.device) for x in task.example(number)]
        with fabric.no_backward_sync(model, enabled=number != numbers[-1]):  # type: ignore[arg-type]
            loss = task.loss(model, example)
            fabric.backward(loss / settings.batch)
        total += loss.item()
    mean = mean_over_processes(fabric, total / settings.batch)
    slope = torch.nn.utils.get_total_norm(x.grad for x in model.parameters() if x.grad is not None).item()
    if not (math.isfinite(mean) and math.isfinite(slope)):
        raise UsageError(
            f"the loss is {mean} and the norm of its gradient {slope} in step {step + 1}: "
            f"start in another folder, with a lower learning rate than {settings.learning_rate}"
        )
    optimizer.step()
    return mean


def _averaging(steps: int) -> Callable[[Any, Any, Tensor | int], None]:
    """The plain mean of the first so many steps, then one that forgets: for :class:`AveragedModel`."""

    @torch.no_grad()
    def update(averaged: Any, current: Any, count: Tensor | int) -> None:
        share = max(1 / steps, 1 / (int(count) + 1))
        for mean, value in zip(averaged, current, strict=True):
            mean.lerp_(value, share)

    return update


def _mean(values: list[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


def _look(fabric: Fabric, task: Task, network: nn.Module, out: Path, step: int) -> None:
    if not fabric.is_global_zero:
        return
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        picture = task.look(network)
    if picture is None:
        return
    buffer = BytesIO()
    picture.save(buffer, "PNG")
    write_atomically(out / f"look_{step:06d}.png", buffer.getvalue())


def _check_same(out: Path, state: dict[str, Any] | None, described: dict[str, Any]) -> None:
    if state is None:
        return
    before = state["settings"]
    differ = [name for name in described if name not in MAY_CHANGE and before.get(name) != described[name]]
    if differ:
        listed = ", ".join(f"{name} {before.get(name)}, not {described[name]}" for name in differ)
        raise UsageError(f"{out} holds a run with {listed}: choose another folder, or the same settings to go on")
    if state["step"] > described["iterations"]:
        more = f"{state['step']} steps, more than {described['iterations']}"
        raise UsageError(f"{out} holds a run of {more}: choose another folder, or more iterations")


class _Silent:
    """The log of a process that is not the first."""

    def add(self, step: int, loss: float, seconds: float) -> None:
        pass

    def __enter__(self) -> "_Silent":
        return self

    def __exit__(self, *_: object) -> None:
        pass
