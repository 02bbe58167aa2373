"""Random draws for training examples: they depend on the run's seed and the example's number alone."""

import torch

from psal.seeds import seed_of_example


def example_generator(seed: int, number: int) -> torch.Generator:
    """Return the source of random numbers for one of a run's numbered examples."""
    return torch.Generator().manual_seed(seed_of_example(seed, number))


def draw_below(count: int, generator: torch.Generator) -> int:
    """Draw an integer from 0 to ``count`` − 1."""
    return int(torch.randint(count, (), generator=generator))


def draw_between(low: float, high: float, generator: torch.Generator) -> float:
    """Draw a number from ``low`` to ``high``."""
    return low + (high - low) * float(torch.rand((), generator=generator))
