"""Fill holes in pictures of any size with a trained inpainting network."""

import torch
import torch.nn.functional as F
from torch import Tensor

from psal.models.inpainting.generator import STRIDE, Generator


@torch.no_grad()
def fill(network: Generator, image: Tensor, hole: Tensor) -> Tensor:
    """Fill holes in pictures, each as a whole.

    Args:
        network: the network, in eval mode.
        image: ``(B, 3, H, W)`` in 0..1, of any size. Values in the hole are ignored.
        hole: bool ``(B, 1, H, W)``, True in the hole.

    Returns:
        ``(B, 3, H, W)`` in 0..1, unchanged outside the hole.

    Raises:
        ValueError: if the attention needs more keys than the hole leaves.
    """
    height, width = image.shape[2:]
    _, refined = network(pad_to_stride(image * 2 - 1), pad_to_stride(hole))
    return torch.where(hole, (refined[..., :height, :width] + 1) / 2, image)


def pad_to_stride(x: Tensor) -> Tensor:
    """Repeat the last row and column of a map until its sides are multiples of 4.

    A mask is padded in the same way: the copy of an unknown pixel is unknown, too.
    """
    padded = F.pad(x.float(), (0, -x.shape[3] % STRIDE, 0, -x.shape[2] % STRIDE), mode="replicate")
    return padded.to(x.dtype)


def attention_of(network: Generator) -> torch.nn.Module | None:
    """Return the network's attention layer, or None if it has no attention branch."""
    branch = network.refinement.attention_branch
    return None if branch is None else branch.attention
