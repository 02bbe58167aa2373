"""PSNR and SSIM as super-resolution papers report them: of Y, without a border."""

import math

import torch
from torch import Tensor

LUMA = (65.481, 128.553, 24.966)  # of ITU-R BT.601, as MATLAB's rgb2ycbcr: 16..235 for RGB in 0..1


def luma(image: Tensor) -> Tensor:
    """Return Y ``(H, W)``, float64 in 16..235, of an RGB picture ``(3, H, W)``, uint8."""
    return torch.einsum("c,chw->hw", torch.tensor(LUMA, dtype=torch.float64), image.double() / 255) + 16


def psnr_of_luma(image: Tensor, original: Tensor, border: int) -> float:
    """Peak signal-to-noise ratio in dB.

    Args:
        image, original: RGB ``(3, H, W)``, uint8.
        border: pixels left out at each side.

    >>> black = torch.zeros(3, 9, 9, dtype=torch.uint8)
    >>> round(psnr_of_luma(black, black + 255, border=2), 3)
    1.322
    """
    error = (_inner(image, border) - _inner(original, border)).square().mean().item()
    return 10 * math.log10(255**2 / error) if error else math.inf


def ssim_of_luma(image: Tensor, original: Tensor, border: int) -> float:
    """Structural similarity (Wang et al. 2004) with their Gaussian window of 11 × 11 pixels; arguments as for PSNR."""
    from skimage.metrics import structural_similarity

    return float(
        structural_similarity(
            _inner(image, border).numpy(), _inner(original, border).numpy(), data_range=255,
            gaussian_weights=True, sigma=1.5, use_sample_covariance=False,
        )
    )  # fmt: skip


def _inner(image: Tensor, border: int) -> Tensor:
    return luma(image)[border : image.shape[1] - border, border : image.shape[2] - border]
