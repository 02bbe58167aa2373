"""Fill holes in pictures of any size with a trained inpainting network."""

import torch
import torch.nn.functional as F
from torch import Tensor

from psal.models.inpainting.contextual_attention import ContextualAttention
from psal.models.inpainting.generator import STRIDE, Generator

FLOATS_PER_PIXEL = 6  # times the width: peak of the convolutions, measured by psal bench inpainting large


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


def needed_memory(network: Generator, height: int, width: int) -> int:
    """Return about how many bytes the network needs for a picture of this size; a lower bound for its attention."""
    layer = attention_of(network)
    inside = 4 * FLOATS_PER_PIXEL * network.width * height * width
    if not isinstance(layer, ContextualAttention):
        return inside
    return max(inside, layer.min_memory(4 * network.width, -(-height // STRIDE), -(-width // STRIDE)))
