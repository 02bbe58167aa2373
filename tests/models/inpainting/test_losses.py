"""Losses of the inpainting network."""

import torch
from support.tolerances import assert_close
from torch import Tensor, nn

from psal.models.inpainting.losses import discounted_l1, gradient_penalty, known_l1, realness_gap


def test_errors_deep_in_the_hole_count_less() -> None:
    truth = torch.zeros(2, 3, 5, 7)
    depth = torch.zeros(2, 1, 5, 7)
    depth[:, :, 1:4, 2:5] = 1
    depth[:, :, 2, 3] = 2
    image = truth + 1
    assert_close(discounted_l1(image, truth, depth, area=10), torch.tensor((8 * 0.9 + 0.81) / 10))
    assert_close(known_l1(image, truth, depth), torch.tensor((35 - 9) / 35))


class Linear(nn.Module):
    """Critics whose gradients are known."""

    def __init__(self) -> None:
        super().__init__()
        self.slopes = nn.Parameter(torch.tensor([0.5, 3.0]))

    def forward(self, *pictures: Tensor) -> Tensor:
        scores = [slope * picture[:, 0, 0, 0] for slope, picture in zip(self.slopes, pictures, strict=True)]
        return torch.stack(scores, 1)


def test_the_penalty_draws_the_norm_of_the_gradients_to_one() -> None:
    critic = Linear()
    real = [torch.rand(2, 3, 6, 6), torch.rand(2, 3, 4, 4)]
    fake = [torch.rand(2, 3, 6, 6), torch.rand(2, 3, 4, 4)]
    penalty = gradient_penalty(critic, real, fake)
    assert_close(penalty.detach(), torch.tensor(0.5**2 + 2.0**2))
    [gradient] = torch.autograd.grad(penalty, [critic.slopes])
    assert_close(gradient, torch.tensor([-1.0, 4.0]))


def test_the_gap_sums_over_critics() -> None:
    fake, real = torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([[0.0, 1.0], [0.0, 1.0]])
    assert_close(realness_gap(fake, real), torch.tensor(2.0 + 2.0))
