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
from psal.training import checkpoint
from psal.training.learner import Learner
from psal.training.log import Log
from psal.training.processes import check_agreement, merge_lines, processes
from psal.training.settings import Settings
from psal.training.task import AdversarialTask, Task

WEIGHTS = "model.safetensors"
MAY_CHANGE = ("iterations", "checkpoint_every", "log_every", "look_every")  # when a run is resumed


def weights_of(run: Path) -> Path:
    """Return the weights in the folder of a run, or the path itself if it is a file of weights."""
    return run / WEIGHTS if run.is_dir() else run


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
    critic = None
    if isinstance(task, AdversarialTask):
        learner = Learner(fabric, task.build(), settings, task.betas)
        critic = Learner(fabric, task.build_critic(), settings, task.betas)
    else:
        learner = Learner(fabric, task.build(), settings)
    average = AveragedModel(learner.network, multi_avg_fn=_averaging(settings.average))
    if state is not None:
        learner.load(state)
        average.load_state_dict(state["average"])
        if critic is not None:
            critic.load(state["critic"])
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
                    "step": step, "settings": described, **learner.state(), "average": average.state_dict(),
                    "seconds": time.perf_counter() - started, "since_row": since_row, "loss": loss_shown,
                    "complaints": complaints, **({} if critic is None else {"critic": critic.state()}),
                },
            )  # fmt: skip

    with Log(out, start) if fabric.is_global_zero and start < settings.iterations else _Silent() as log:
        for step in range(start, settings.iterations):
            loss = _step(task, learner, critic, step)
            if loss is not None:
                since_row.append(loss)
            average.update_parameters(learner.network)
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


def _step(task: Task, learner: Learner, critic: Learner | None, step: int) -> float | None:
    """Take one step; return the network's mean loss, or None if the step trained the critic alone."""
    if critic is None or not isinstance(task, AdversarialTask):
        return learner.update(task, lambda example: task.loss(learner.model, example), step)
    if task.trains_critic(step):
        critic.update(task, lambda example: task.critic_loss(critic.model, learner.model, example), step)
    if not task.trains_network(step):
        return None
    if not task.trains_critic(step):
        return learner.update(task, lambda example: task.loss(learner.model, example), step)
    with critic.frozen():
        return learner.update(task, lambda example: task.adversarial_loss(learner.model, critic.model, example), step)


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
