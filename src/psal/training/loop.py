"""The training loop of all tasks: averaged weights, checkpoints, bit-exact resuming, distributed processes."""

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
from psal.seeds import seed_of_example
from psal.training import checkpoint
from psal.training.log import Log
from psal.training.processes import check_agreement, mean_over_processes, merge_lines, processes
from psal.training.task import Task

WEIGHTS = "model.safetensors"
MAY_CHANGE = ("iterations", "checkpoint_every", "log_every", "look_every")  # when a run is resumed


@dataclass(frozen=True)
class Settings:
    """Hyperparameters of a training run.

    Attributes:
        iterations: total number of steps.
        batch: examples per step and process.
        learning_rate: learning rate of Adam.
        average: time constant, in steps, of the exponential moving average of the weights that is written at the end;
            with small batches the weights of a single step are noisy.
        seed: seed of the initial weights, the examples and the searches.
        precision: a precision of Fabric, such as "32-true" or "bf16-mixed".
        device: "cpu" or "cuda".
        checkpoint_every, log_every, look_every: steps between checkpoints, log rows and preview images.

    Raises:
        UsageError: if the learning rate is not positive and finite.
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
            raise UsageError(f"the learning rate must be positive and finite, got {self.learning_rate}")


@dataclass(frozen=True)
class Outcome:
    """Outcome of a training run.

    Attributes:
        resumed_from: steps that had been done before this run.
        steps: steps done in total.
        loss: the loss logged last.
        seconds_per_step: mean time of a step in this run; NaN if it had none.
        complaints: a line for each file that could not be read.
    """

    resumed_from: int
    steps: int
    loss: float
    seconds_per_step: float
    complaints: list[str]


def train(
    task: Task, settings: Settings, out: Path, progress: Callable[[int, float], None] = lambda step, loss: None
) -> Outcome:
    """Train a task, or resume the run in the folder ``out``. On a CPU, a resumed run ends with the same bits.

    In step s, process r of w takes ``batch`` consecutive examples, starting at number (s · w + r) · batch. Before each
    example, torch's generator is seeded with the run's seed and the example's number. So checkpoints need no generator
    state, and a step does not depend on how its examples are distributed over processes.

    Args:
        task: the task.
        settings: its hyperparameters.
        out: folder of the run: checkpoint.pt, log.csv, tensorboard/, look_*.png, and at the end model.safetensors.
        progress: called with the number of steps done and the loss.

    Raises:
        UsageError: if the folder holds a run with other settings or more steps, or if the loss or its gradient becomes
            NaN or infinite.
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
    # Other machines may not see the folder.
    state = fabric.broadcast(checkpoint.load(out) if fabric.is_global_zero else None)
    _check_resumable(out, state, described)

    torch.manual_seed(settings.seed)
    network = task.build()
    model, optimizer = fabric.setup(network, torch.optim.Adam(network.parameters(), lr=settings.learning_rate))
    average = AveragedModel(network, multi_avg_fn=_averaging(settings.average))
    if state is not None:  # after setup, which converts the weights to the precision
        network.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        average.load_state_dict(state["average"])
    start = state["step"] if state else 0
    seconds_before, since_row = (state["seconds"], state["since_row"]) if state else (0.0, [])
    loss_shown = state["loss"] if state else math.nan
    complaints = state["complaints"] if state else []
    started = time.perf_counter() - seconds_before

    def save_checkpoint(step: int) -> None:
        nonlocal complaints
        complaints = merge_lines(fabric, complaints + task.complaints())
        if fabric.is_global_zero:
            checkpoint.save(
                out,
                {
                    "step": step, "settings": described, "model": network.state_dict(),
                    "average": average.state_dict(), "optimizer": optimizer.state_dict(),
                    "seconds": time.perf_counter() - started, "since_row": since_row, "loss": loss_shown,
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
                log.add(done, loss_shown, time.perf_counter() - started)
            if done % settings.checkpoint_every == 0 or done == settings.iterations:
                save_checkpoint(done)
            if done % settings.look_every == 0 or done == settings.iterations:
                _look(fabric, task, average.module, out, done)
            progress(done, _mean(since_row, loss_shown))
    if fabric.is_global_zero:
        weights = {name: x.contiguous() for name, x in average.module.state_dict().items()}
        write_atomically(out / WEIGHTS, save_weights(weights, {name: str(value) for name, value in described.items()}))
    done = settings.iterations
    seconds = (time.perf_counter() - started - seconds_before) / (done - start) if done > start else math.nan
    return Outcome(start, done, _mean(since_row, loss_shown), seconds, complaints)


def _step(fabric: Fabric, task: Task, model: nn.Module, optimizer: Any, settings: Settings, step: int) -> float:
    """Take one step in all processes; return the mean loss of their examples."""
    first = (step * fabric.world_size + fabric.global_rank) * settings.batch
    numbers = range(first, first + settings.batch)
    optimizer.zero_grad()
    total = 0.0
    for number in numbers:
        torch.manual_seed(seed_of_example(settings.seed, number))
        example = [x.to(fabric.device) for x in task.example(number)]
        with fabric.no_backward_sync(model, enabled=number != numbers[-1]):  # type: ignore[arg-type]
            loss = task.loss(model, example)
            fabric.backward(loss / settings.batch)
        total += loss.item()
    mean = mean_over_processes(fabric, total / settings.batch)
    gradient_norm = torch.nn.utils.get_total_norm(x.grad for x in model.parameters() if x.grad is not None).item()
    if not (math.isfinite(mean) and math.isfinite(gradient_norm)):
        raise UsageError(
            f"the loss is {mean} and the norm of its gradient {gradient_norm} in step {step + 1}: "
            f"start in another folder, with a lower learning rate than {settings.learning_rate}"
        )
    optimizer.step()
    return mean


def _averaging(steps: int) -> Callable[[Any, Any, Tensor | int], None]:
    """Return :class:`AveragedModel`'s update: the mean of the first ``steps`` steps, then a moving average."""

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


def _check_resumable(out: Path, state: dict[str, Any] | None, described: dict[str, Any]) -> None:
    if state is None:
        return
    before = state["settings"]
    differ = [name for name in described if name not in MAY_CHANGE and before.get(name) != described[name]]
    if differ:
        listed = ", ".join(f"{name} {before.get(name)}, not {described[name]}" for name in differ)
        raise UsageError(f"{out} holds a run with {listed}: choose another folder, or resume with the same settings")
    if state["step"] > described["iterations"]:
        more = f"{state['step']} steps, more than {described['iterations']}"
        raise UsageError(f"{out} holds a run of {more}: choose another folder, or more iterations")


class _Silent:
    """The log of processes other than the first."""

    def add(self, step: int, loss: float, seconds: float) -> None:
        pass

    def __enter__(self) -> "_Silent":
        return self

    def __exit__(self, *_: object) -> None:
        pass
