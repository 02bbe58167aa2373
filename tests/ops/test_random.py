import torch

from psal.ops.random import random_integers


def draw(seed: int, stream: int, count: int, size: int = 4096) -> torch.Tensor:
    return random_integers(torch.tensor(seed), stream, torch.arange(size), torch.tensor(count))


def test_numbers_never_change() -> None:
    """Guards the promise that a seed gives the same matches in every version."""
    numbers = random_integers(torch.tensor(42), 3, torch.arange(8), torch.tensor(1000))
    assert numbers.tolist() == [94, 776, 636, 397, 602, 947, 342, 102]


def test_numbers_stay_below_the_count() -> None:
    largest = 2**31 - 1
    for count in (1, 2, 3, 1000, largest):
        numbers = draw(7, 0, count)
        assert numbers.min() >= 0
        assert numbers.max() < count


def test_numbers_are_uniform() -> None:
    counts = draw(7, 0, 8, size=80_000).bincount(minlength=8)
    assert (counts - 10_000).abs().max() < 500  # five standard deviations


def test_streams_are_uncorrelated() -> None:
    first, second = (draw(7, stream, 2**20).double() for stream in (0, 1))
    correlation = torch.corrcoef(torch.stack([first, second]))[0, 1]
    assert abs(correlation) < 0.08  # five standard deviations


def test_neighboring_seeds_are_uncorrelated() -> None:
    first, second = (draw(seed, 0, 2**20).double() for seed in (7, 8))
    correlation = torch.corrcoef(torch.stack([first, second]))[0, 1]
    assert abs(correlation) < 0.08


def test_both_halves_of_the_seed_matter() -> None:
    assert not draw(1, 0, 1000).equal(draw(1 + 2**32, 0, 1000))
