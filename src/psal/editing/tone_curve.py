"""Tone curves that bring a picture's luminance to the exposure of a reference."""

import numpy as np
import torch
from torch import Tensor

STEPS = 256
MIN_LUMA = 0.02  # darker values are mostly noise, and their logarithms dominate a fit
FITTED_QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
MIN_LOG_SPREAD = 0.01  # of the quantiles' logarithms; below it there is nothing to fit a gamma to
MIN_GAMMA, MAX_GAMMA = 0.2, 5.0


def candidate_curves(luma: Tensor, reference: Tensor) -> list[Tensor]:
    """Curves that may bring a picture's luminance to the reference's exposure.

    None of the three is best for all pairs:

    - identity, for equal exposures with different amounts of light and dark;
    - gain and gamma, fitted to quantiles;
    - histogram matching, right for any change of exposure if both pictures show the same amounts.

    Args:
        luma: ``[1, H, W]``, 0..1.
        reference: luminance of the reference, 0..1, of any shape.

    Returns:
        Curves ``[256]``, from black to white, for :func:`apply_curve`.
    """
    identity = torch.linspace(0, 1, STEPS)
    return [identity, _gain_and_gamma(luma, reference, identity), _matched_histogram(luma, reference)]


def apply_curve(curve: Tensor, luma: Tensor) -> Tensor:
    """Map luma ``[1, H, W]`` through a curve, with linear interpolation. (np.interp takes five times as long.)"""
    position = luma * (STEPS - 1)
    below = position.long().clamp_max_(STEPS - 2)
    return curve[below].lerp(curve[below + 1], position - below)


def _gain_and_gamma(luma: Tensor, reference: Tensor, identity: Tensor) -> Tensor:
    """gain · luma ^ gamma, by least squares on the logarithms of the quantiles."""
    at = torch.tensor(FITTED_QUANTILES)
    given, wanted = (_quantiles(x, at).clamp_min(MIN_LUMA).log() for x in (luma, reference))
    spread = given - given.mean()
    if spread.abs().max() < MIN_LOG_SPREAD:
        gamma = torch.ones(())
    else:
        gamma = ((spread * (wanted - wanted.mean())).sum() / (spread**2).sum()).clamp(MIN_GAMMA, MAX_GAMMA)
    return (gamma * (identity.clamp_min(1e-3).log() - given.mean()) + wanted.mean()).exp().clamp(0, 1)


def _matched_histogram(luma: Tensor, reference: Tensor) -> Tensor:
    """Map each step to the reference's value of the same rank."""
    counts = torch.histc(luma, STEPS, 0, 1)
    ranks = (counts.cumsum(0) - counts / 2) / counts.sum()
    return _quantiles(reference, ranks)


def _quantiles(x: Tensor, at: Tensor) -> Tensor:
    return torch.from_numpy(np.quantile(x.numpy(), at.numpy()).astype(np.float32))
