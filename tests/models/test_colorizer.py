"""The colorization network before training."""

import torch
from support.tolerances import assert_close
from torch import Tensor, nn

from psal.luminance import luminance
from psal.models import Colorizer


class SamePosition(nn.Module):
    """Attention that matches every pixel with the one at the same position."""

    def forward(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return value


class Distance(nn.Module):
    """Attention that stores the mean squared difference of query and key."""

    def forward(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        self.found = (query - key).square().mean().item()
        return value


def test_an_untrained_network_adds_the_chroma_of_the_matches() -> None:
    reference = torch.rand(3, 19, 23)
    colored = Colorizer(SamePosition())(luminance(reference)[None], reference[None])
    assert_close(colored[0], reference)


def test_an_untrained_network_matches_an_image_with_itself_better_than_with_its_negative() -> None:
    for seed in range(5):
        torch.manual_seed(seed)
        picture = torch.rand(3, 31, 17)
        attention = Distance()
        network = Colorizer(attention)
        network(luminance(picture)[None], picture[None])
        alike = attention.found
        network(1 - luminance(picture)[None], picture[None])
        assert alike < attention.found
