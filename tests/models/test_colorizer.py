"""The colorization network before training."""

import pytest
import torch
from support.tolerances import assert_close
from torch import Tensor, nn
from torch.nn import functional as F

from psal import PatchAttention
from psal.models import Colorizer


class SamePosition(nn.Module):
    """Attention that matches every pixel with the one at the same position."""

    def forward(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return value


def test_colors_come_from_the_gray_image_and_the_attended_values_together() -> None:
    network = Colorizer(SamePosition())
    weights = dict(network.named_parameters())
    gray, reference = torch.rand(2, 1, 19, 23), torch.rand(2, 3, 19, 23)
    value = F.conv2d(reference, weights["value.0.weight"], weights["value.0.bias"], padding=1).relu()
    both = torch.cat([gray, gray, gray, value], 1)
    expected = F.conv2d(both, weights["color.0.weight"], weights["color.0.bias"], padding=1).sigmoid()
    assert_close(network(gray, reference), expected)


def test_query_and_key_are_not_negative() -> None:
    seen: list[Tensor] = []
    network = Colorizer(SamePosition())
    network.attention.register_forward_pre_hook(lambda _, maps: seen.extend(maps))
    network(torch.rand(1, 1, 17, 13), torch.rand(1, 3, 17, 13))
    assert len(seen) == 3
    for x in seen:
        assert x.shape == (1, 16, 17, 13)
        assert x.min() == 0  # ReLU
        assert x.max() > 0


@pytest.mark.parametrize(("neighbors", "aggregate"), [(3, False), (1, True)])
def test_gradients_reach_every_parameter(neighbors: int, aggregate: bool) -> None:
    torch.manual_seed(0)
    network = Colorizer(PatchAttention(3, neighbors, aggregate=aggregate, seed=0))
    network(torch.rand(1, 1, 15, 18), torch.rand(1, 3, 13, 20)).square().mean().backward()
    assert all(x.grad is not None and x.grad.abs().sum() > 0 for x in network.parameters())


def test_one_neighbor_gives_no_gradient_to_query_and_key() -> None:
    network = Colorizer(PatchAttention(patch_size=3, neighbors=1, seed=0))
    network(torch.rand(1, 1, 15, 18), torch.rand(1, 3, 13, 20)).square().mean().backward()
    for name, x in network.named_parameters():
        learned = x.grad is not None and bool(x.grad.abs().sum() > 0)
        assert learned == (not name.startswith(("query", "key"))), name
