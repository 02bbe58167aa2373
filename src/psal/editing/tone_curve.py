"""Make a picture's luminance comparable with a reference that was exposed or developed differently."""

import numpy as np
import torch
from torch import Tensor

STEPS = 256
DARKEST = 0.02  # below it, logarithms would be those of noise


def candidate_curves(luma: Tensor, reference: Tensor) -> list[Tensor]:
    """Curves that may bring a luminance to the exposure of the reference's.

    Three, because none is best for all: no change, for pictures of one exposure that show different amounts of
    light and dark; a gain and a gamma, fitted to the quantiles; equal ranks, right for any change of exposure as
    long as both pictures show the same amounts.

    Args:
        luma: ``[1, H, W]``, 0..1.
        reference: ``[1, h, w]``, 0..1.

    Returns:
        Curves ``[256]``, from black to white, for :func:`apply_curve`.
    """
    steps = torch.linspace(0, 1, STEPS)
    return [steps, _power(luma, reference, steps), _equal_ranks(luma, reference)]


def apply_curve(curve: Tensor, luma: Tensor) -> Tensor:
    """The luma ``[1, H, W]`` after a curve, linear between its steps."""
    place = luma * (STEPS - 1)
    below = place.long().clamp_max_(STEPS - 2)
    return curve[below].lerp(curve[below + 1], place - below)


def _power(luma: Tensor, reference: Tensor, steps: Tensor) -> Tensor:
    """gain · luma ^ gamma through the quantiles of the two."""
    at = torch.tensor([0.1, 0.25, 0.5, 0.75, 0.9])
    given, wanted = (_quantiles(x, at).clamp_min(DARKEST).log() for x in (luma, reference))
    spread = given - given.mean()
    if spread.abs().max() < 0.01:  # nothing to fit a gamma to
        gamma = torch.ones(())
    else:
        gamma = ((spread * (wanted - wanted.mean())).sum() / (spread**2).sum()).clamp(0.2, 5.0)
    return (gamma * (steps.clamp_min(1e-3).log() - given.mean()) + wanted.mean()).exp().clamp(0, 1)


def _equal_ranks(luma: Tensor, reference: Tensor) -> Tensor:
    """Each step goes to the reference's value of the same rank."""
    counts = torch.histc(luma, STEPS, 0, 1)
    ranks = (counts.cumsum(0) - counts / 2) / counts.sum()
    return _quantiles(reference, ranks)


def _quantiles(x: Tensor, at: Tensor) -> Tensor:
    return torch.from_numpy(np.quantile(x.numpy(), at.numpy()).astype(np.float32))
