"""The seed of a run reaches its examples and its searches."""

from pathlib import Path

import torch

from psal.data.davis import TrainingPairs
from psal.seeds import seed_of_example


def test_another_seed_draws_other_pairs(davis: Path) -> None:
    draws = [torch.stack([pair[0] for pair in map(TrainingPairs(davis, "train", 8, seed).__getitem__, range(20))])
             for seed in (0, 1, 2)]  # fmt: skip
    assert not torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[1], draws[2])


def test_examples_of_different_runs_have_different_random_numbers() -> None:
    drawn = set()
    for seed in range(5):
        for number in range(20):
            torch.manual_seed(seed_of_example(seed, number))
            drawn.add(int(torch.randint(2**62, ())))
    assert len(drawn) == 100
