"""Seeds of random searches: given, or drawn from torch's generator."""

import operator

import torch
from torch import Tensor


def check_seed(seed: int | None) -> None:
    """Check that a seed is None or fits into 64 bits.

    Raises:
        TypeError, ValueError: if not.
    """
    if seed is None:
        return
    try:
        number = operator.index(seed)
    except TypeError:
        raise TypeError(f"seed must be an int or None, got {seed!r}") from None
    if not -(2**63) <= number < 2**63:
        raise ValueError(f"seed must fit into 64 bits, got {seed}")


def draw_seed(seed: int | None) -> Tensor:
    """Return a seed as the ops take it, a 0-d int64 tensor on the CPU; None draws one from torch's generator."""
    if seed is None:
        return torch.randint(0, 2**62, (), dtype=torch.int64, device="cpu")
    return torch.tensor(seed, dtype=torch.int64, device="cpu")


def add_to_seed(seed: int, offset: int) -> int:
    """Add an offset to a seed, wrapping around at 64 bits: a different seed for each offset."""
    return (int(seed) + offset + 2**63) % 2**64 - 2**63


def seed_of_example(seed: int, number: int) -> int:
    """Return the seed of one of a run's numbered examples, in 32 bits: torch's CPU generator ignores all others.

    Runs with different seeds are far apart: their seeds are multiples of the golden ratio in a circle of 2³².

    >>> seed_of_example(0, 5), seed_of_example(1, 5)
    (5, 2654435774)
    """
    return (number + seed * 0x9E3779B9) % 2**32
