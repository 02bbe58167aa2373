"""How close a filled picture is to the truth, in the hole."""

import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from psal.experiments.inpainting.lpips import LPIPS, MIN_SIDE

RESAMPLES = 2000  # of the pictures, for an interval
CONFIDENCE = 0.95
MAX_PSNR = 100.0  # dB, of an exact fill


class Metric(NamedTuple):
    """A metric: its title in tables, its unit, its digits, and whether higher values are better."""

    title: str
    unit: str
    digits: int
    higher_is_better: bool


METRICS = {
    "l1": Metric("l1, %", "%", 2, False),
    "l2": Metric("l2, %", "%", 2, False),
    "psnr": Metric("PSNR, dB", "dB", 2, True),
    "tv": Metric("TV, %", "%", 2, False),
    "ssim": Metric("SSIM, %", "%", 1, True),
    "lpips": Metric("LPIPS", "", 4, False),
}


def score(filled: Tensor, truth: Tensor, hole: Tensor, lpips: LPIPS | None = None) -> dict[str, float]:
    """Compare a filled picture with the truth.

    All but LPIPS are means over the pixels of the hole: outside of it the pictures are the same. TV is the sum of the
    absolute differences to the right and lower neighbors, and needs no truth. LPIPS is that of the whole picture.

    Args:
        filled: ``(1, 3, H, W)`` in 0..1.
        truth: ``(1, 3, H, W)`` in 0..1.
        hole: bool ``(1, 1, H, W)``, not empty.
        lpips: network for the perceptual distance; None leaves it out.

    Returns:
        Values of :data:`METRICS`, by name.
    """
    from torchmetrics.functional.image import structural_similarity_index_measure

    inside = hole.expand_as(truth)
    error = (filled - truth)[inside].double()
    l2 = error.square().mean().item()
    right = F.pad(filled.diff(dim=3), (0, 1)).abs()
    down = F.pad(filled.diff(dim=2), (0, 0, 0, 1)).abs()
    _, similarity = structural_similarity_index_measure(filled, truth, data_range=1.0, return_full_image=True)
    assert isinstance(similarity, Tensor)
    scores = {
        "l1": 100 * error.abs().mean().item(),
        "l2": 100 * l2,
        "psnr": min(MAX_PSNR, -10 * math.log10(l2)) if l2 else MAX_PSNR,
        "tv": 100 * (right + down)[inside].mean().item(),
        "ssim": 100 * similarity[inside].mean().item(),
    }
    if lpips is not None:
        with torch.no_grad():
            scores["lpips"] = lpips(_at_least(filled, MIN_SIDE), _at_least(truth, MIN_SIDE)).item()
    return scores


def _at_least(image: Tensor, side: int) -> Tensor:
    """Repeat the lower and right border of a picture until both sides have this length."""
    height, width = image.shape[2:]
    return F.pad(image, (0, max(0, side - width), 0, max(0, side - height)), mode="replicate")


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of the mean over pictures; the same values give the same interval.

    >>> interval([1.0, 1.0])
    (1.0, 1.0)
    """
    draws = np.random.default_rng(0).integers(0, len(values), (RESAMPLES, len(values)))
    means = np.asarray(values)[draws].mean(1)
    low, high = np.quantile(means, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return float(low), float(high)


def summary(name: str, values: Sequence[float]) -> str:
    """Mean of a metric over pictures and its interval, as text.

    >>> summary("psnr", [20.0, 20.0])
    '20.00 (20.00 to 20.00)'
    """
    digits = METRICS[name].digits
    low, high = interval(values)
    return f"{statistics.fmean(values):.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def difference(name: str, values: Sequence[float], baseline: Sequence[float]) -> str:
    """Mean difference of a metric to a baseline, picture by picture, and its interval, as text.

    >>> difference("psnr", [20.0, 21.0], [19.5, 20.5])
    '+0.50 (+0.50 to +0.50)'
    """
    differences = [a - b for a, b in zip(values, baseline, strict=True)]
    digits = METRICS[name].digits
    low, high = interval(differences)
    return f"{statistics.fmean(differences):+.{digits}f} ({low:+.{digits}f} to {high:+.{digits}f})"
