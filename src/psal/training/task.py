"""The interface between the training loop and a task."""

from collections.abc import Sequence
from typing import Any, Protocol

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
