import torch

from psal.seeds import add_to_seed, draw_seed


def test_a_given_seed_is_passed_on() -> None:
    assert draw_seed(-5).item() == -5


def test_without_a_seed_one_is_drawn_from_the_generator_of_torch() -> None:
    torch.manual_seed(1)
    first, second = draw_seed(None), draw_seed(None)
    torch.manual_seed(1)
    assert draw_seed(None).equal(first)
    assert not first.equal(second)


def test_a_seed_plus_an_offset_stays_within_64_bits() -> None:
    assert add_to_seed(3, 4) == 7
    assert add_to_seed(2**63 - 1, 1) == -(2**63)
