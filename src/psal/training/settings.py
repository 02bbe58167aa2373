"""Hyperparameters that all training runs have."""

import math
from dataclasses import dataclass

from psal.errors import UsageError


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
