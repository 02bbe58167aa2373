"""The interface between the training loop and a task."""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from PIL import Image
from torch import Tensor, nn


class Task(Protocol):
    """A network, its training examples and its loss. ``settings`` identifies all of it when a run is resumed."""

    name: str
    settings: dict[str, Any]

    def build(self) -> nn.Module:
        """Build the untrained network."""

    def example(self, number: int) -> Sequence[Tensor]:
        """Return the tensors ``(1, …)`` of an example; the same number always gives the same ones."""

    def loss(self, model: nn.Module, example: Sequence[Tensor]) -> Tensor:
        """Return the loss of an example, a 0-d tensor."""

    def look(self, model: nn.Module) -> Image.Image | None:
        """Render a preview of the network's output; None if there is nothing to show."""

    def complaints(self) -> list[str]:
        """Return a line for each file that could not be read."""


@runtime_checkable
class AdversarialTask(Task, Protocol):
    """A task with a critic: a second network that learns to tell outputs of the first one from real pictures.

    Both are trained on the same examples, each in the steps that the task chooses, the critic first.
    """

    betas: tuple[float, float]  # decay rates of Adam's moments, for both networks

    def build_critic(self) -> nn.Module:
        """Build the untrained critic."""

    def trains_critic(self, step: int) -> bool:
        """Return whether the critic is trained in a step; if so, the network's loss is the adversarial one."""

    def trains_network(self, step: int) -> bool:
        """Return whether the network is trained in a step."""

    def critic_loss(self, critic: nn.Module, model: nn.Module, example: Sequence[Tensor]) -> Tensor:
        """Return the critic's loss on an example, a 0-d tensor without a graph to the network's weights."""

    def adversarial_loss(self, model: nn.Module, critic: nn.Module, example: Sequence[Tensor]) -> Tensor:
        """Return the network's loss on an example, with the critic's judgement in it."""
