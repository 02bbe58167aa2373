"""A network that a run trains, with its optimizer."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from lightning_fabric import Fabric
from torch import Tensor, nn

from psal.errors import UsageError
from psal.seeds import seed_of_example
from psal.training.processes import mean_over_processes
from psal.training.settings import Settings
from psal.training.task import Task

Loss = Callable[[Sequence[Tensor]], Tensor]  # of an example, a 0-d tensor
ADAM_BETAS = (0.9, 0.999)  # torch's default


class Learner:
    """A network, the network as Fabric wraps it, and its optimizer.

    Args:
        fabric: of the run.
        network: the untrained network.
        settings: of the run.
        betas: decay rates of Adam's moments.

    Attributes:
        network: the network itself, whose state is saved.
        model: the network to call: it converts types and synchronizes gradients.
    """

    def __init__(
        self, fabric: Fabric, network: nn.Module, settings: Settings, betas: tuple[float, float] = ADAM_BETAS
    ) -> None:
        self.network = network
        optimizer = torch.optim.Adam(network.parameters(), lr=settings.learning_rate, betas=betas)
        self.model: Any
        self.optimizer: Any
        self.model, self.optimizer = fabric.setup(network, optimizer)
        self._fabric = fabric
        self._settings = settings

    def update(self, task: Task, loss_of: Loss, step: int) -> float:
        """Take one step in all processes; return the mean loss of their examples.

        Raises:
            UsageError: if the loss or its gradient is NaN or infinite.
        """
        fabric, batch = self._fabric, self._settings.batch
        first = (step * fabric.world_size + fabric.global_rank) * batch
        numbers = range(first, first + batch)
        self.optimizer.zero_grad()
        total = 0.0
        for number in numbers:
            torch.manual_seed(seed_of_example(self._settings.seed, number))
            example = [x.to(fabric.device) for x in task.example(number)]
            with fabric.no_backward_sync(self.model, enabled=number != numbers[-1]):
                loss = loss_of(example)
                fabric.backward(loss / batch)
            total += loss.item()
        mean = mean_over_processes(fabric, total / batch)
        gradients = (x.grad for x in self.model.parameters() if x.grad is not None)
        gradient_norm = torch.nn.utils.get_total_norm(gradients).item()
        if not (math.isfinite(mean) and math.isfinite(gradient_norm)):
            raise UsageError(
                f"the loss is {mean} and the norm of its gradient {gradient_norm} in step {step + 1}: "
                f"start in another folder, with a lower learning rate than {self._settings.learning_rate}"
            )
        self.optimizer.step()
        return mean

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Let gradients pass through the network in a ``with`` block, but not into its weights."""
        self.network.requires_grad_(False)
        try:
            with self._fabric.no_backward_sync(self.model):
                yield
        finally:
            self.network.requires_grad_(True)

    def state(self) -> dict[str, Any]:
        """Return the weights and the state of the optimizer."""
        return {"model": self.network.state_dict(), "optimizer": self.optimizer.state_dict()}

    def load(self, state: dict[str, Any]) -> None:
        """Take over a state; call it after construction, which converts the weights to the run's precision."""
        self.network.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
