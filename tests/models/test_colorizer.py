"""What the colorization network does before it has learned anything."""

import torch
from support.tolerances import assert_close
from torch import Tensor, nn

from psal.luminance import luminance
from psal.models import Colorizer


class SamePlace(nn.Module):
    """Attention that finds for every pixel the one at its own place."""

    def forward(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return value


class Distance(nn.Module):
    """Keeps the mean square of query minus key."""

    def forward(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        self.found = (query - key).square().mean().item()
        return value


def test_a_new_network_adds_the_chroma_of_what_attention_finds() -> None:
    reference = torch.rand(3, 19, 23)
    colored = Colorizer(SamePlace())(luminance(reference)[None], reference[None])
    assert_close(colored[0], reference)


def test_a_new_network_compares_like_with_like_better_than_with_its_negative() -> None:
    for seed in range(5):
        torch.manual_seed(seed)
        picture = torch.rand(3, 31, 17)
        attention = Distance()
        network = Colorizer(attention)
        network(luminance(picture)[None], picture[None])
        alike = attention.found
        network(1 - luminance(picture)[None], picture[None])
        assert alike < attention.found
