"""What the training loop asks of a task."""

from collections.abc import Sequence
from typing import Any, Protocol

from PIL import Image
from torch import Tensor, nn


class Task(Protocol):
    """A network, its examples by number, and its loss. Everything about it is in ``settings``."""

    name: str
    settings: dict[str, Any]

    def build(self) -> nn.Module:
        """The network, new."""

    def example(self, number: int) -> Sequence[Tensor]:
        """Tensors ``(1, …)``; the same number gives the same ones."""

    def loss(self, model: nn.Module, example: Sequence[Tensor]) -> Tensor:
        """What is made small."""

    def look(self, model: nn.Module) -> Image.Image | None:
        """What the network does at present, as a picture; None if there is nothing to look at."""

    def complaints(self) -> list[str]:
        """A line for each file that could not be used."""
