"""Losses of the inpainting network: spatially discounted l1, and those of a Wasserstein GAN with gradient penalty."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

DISCOUNT = 0.9  # per pixel of distance from the known ones


def discounted_l1(image: Tensor, truth: Tensor, depth: Tensor, area: float) -> Tensor:
    """Absolute error in the hole, with the weight 0.9 ^ depth: deep inside, several fills are plausible.

    Args:
        image: ``(B, 3, H, W)``.
        truth: ``(B, 3, H, W)``.
        depth: ``(B, 1, H, W)``, distance to the nearest known pixel; 0 outside the hole, 1 at its border.
        area: number of pixels that the sum of errors is divided by.

    Returns:
        A 0-d tensor.

    >>> truth = torch.zeros(1, 3, 4, 4)
    >>> depth = torch.zeros(1, 1, 4, 4)
    >>> depth[..., 1, 1] = 1
    >>> round(discounted_l1(truth + 0.5, truth, depth, area=1).item(), 6)
    0.45
    """
    weight = torch.where(depth > 0, DISCOUNT**depth, 0)
    return ((image - truth).abs() * weight).sum() / (image.shape[0] * image.shape[1] * area)


def known_l1(image: Tensor, truth: Tensor, depth: Tensor) -> Tensor:
    """Absolute error outside the hole, summed, divided by the number of all pixels; arguments as above."""
    return ((image - truth).abs() * (depth == 0)).mean()


def realness_gap(fake: Tensor, real: Tensor) -> Tensor:
    """How much more real the fake pictures look to the critics, from scores ``(B, n)``: the n gaps are summed."""
    return (fake - real).mean(0).sum()


def gradient_penalty(critic: nn.Module, real: Sequence[Tensor], fake: Sequence[Tensor]) -> Tensor:
    """Squared deviation of the norm of the critics' gradients from 1, at random points between real and fake pictures.

    Args:
        critic: called with as many pictures as ``real`` has; returns scores ``(B, n)``, where score i depends on the
            i-th picture alone.
        real: pictures ``(B, 3, H, W)``, one for each critic.
        fake: pictures of the same sizes.

    Returns:
        A 0-d tensor with a graph to the critics' parameters; the penalties of the critics are summed.
    """
    between = []
    for a, b in zip(real, fake, strict=True):
        share = torch.rand(len(a), 1, 1, 1, dtype=a.dtype).to(a.device)  # drawn on the CPU, for all devices alike
        between.append(torch.lerp(b, a, share).detach().requires_grad_())
    scores = critic(*between)
    gradients = torch.autograd.grad(scores.sum(), between, create_graph=True)
    penalties = [(torch.linalg.vector_norm(gradient.flatten(1), dim=1) - 1).square().mean() for gradient in gradients]
    return torch.stack(penalties).sum()
