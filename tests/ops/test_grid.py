import pytest
import torch
from support.maps import normal_map
from support.tolerances import assert_same_bits

from psal.ops.grid import pad


@pytest.mark.parametrize(
    ("padding_mode", "mode"), [("replicate", "replicate"), ("reflect", "reflect"), ("zeros", "constant")]
)
def test_padding_is_that_of_torch(padding_mode: str, mode: str) -> None:
    x = normal_map(1, 2, 6, 7)
    expected = torch.nn.functional.pad(x, (3, 3, 1, 1), mode=mode)
    assert_same_bits(pad(x, (3, 7), padding_mode), expected)


def test_reflection_repeats_where_the_patch_is_larger_than_the_image() -> None:
    x = torch.tensor([[[0.0, 1.0, 2.0]]])
    padded = pad(x, (11,), "reflect")
    assert padded.flatten().tolist() == [1, 0, 1, 2, 1, 0, 1, 2, 1, 0, 1, 2, 1]


def test_reflecting_a_single_pixel_repeats_it() -> None:
    assert pad(torch.full((1, 1, 1), 3.0), (5,), "reflect").flatten().tolist() == [3.0] * 5
