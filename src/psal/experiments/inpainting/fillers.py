"""Ways to fill a hole that Table 6 compares: networks, and methods that need no training."""

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from psal import inpaint
from psal.errors import UsageError
from psal.experiments.networks import Network
from psal.models.inpainting.attentions import build_inpainting_attention
from psal.models.inpainting.filling import attention_of, fill
from psal.models.inpainting.weights import load_generator
from psal.swap import swap_attention_

Filler = Callable[[Tensor, Tensor], Tensor]  # picture (1, 3, H, W) in 0..1 and hole (1, 1, H, W) to the filled picture
SEED = 0
TELEA_RADIUS = 3  # pixels, OpenCV's usual one


def network_filler(weights: Path, network: Network) -> Filler:
    """Return the filler of a trained network with the attention it is tested with.

    Raises:
        UsageError: if the weights are of a network that was trained with another attention.
    """
    generator, settings = load_generator(weights, seed=SEED)
    if settings["attention"] != network.trained:
        raise UsageError(f"{weights} was trained with attention {settings['attention']}, not {network.trained}")
    if network.trained != network.tested and attention_of(generator) is not None:
        swap_attention_(generator, build_inpainting_attention(network.tested, SEED))
    return lambda image, hole: fill(generator, image, hole)


def fill_by_patches(image: Tensor, hole: Tensor, guide: Tensor | None = None) -> Tensor:
    """Fill by :func:`psal.inpaint`."""
    filled: Tensor = inpaint(image, hole[0, 0], seed=SEED, guide=guide)
    return filled


def fill_by_telea(image: Tensor, hole: Tensor) -> Tensor:
    """Fill by OpenCV's method of Telea 2004, on 8 bits per channel.

    Raises:
        ImportError: if OpenCV is not installed.
    """
    import cv2

    pixels = np.ascontiguousarray((image[0] * 255).round().byte().permute(1, 2, 0).numpy())
    mask = hole[0, 0].byte().numpy() * 255
    filled = torch.from_numpy(cv2.inpaint(pixels, mask, TELEA_RADIUS, cv2.INPAINT_TELEA))
    return torch.where(hole, filled.permute(2, 0, 1)[None] / 255, image)


def has_opencv() -> bool:
    """Return whether OpenCV is installed."""
    return find_spec("cv2") is not None
