"""Fill holes in a picture, with patches of the rest of it or by a trained network.

Patches: after Newson, Almansa, Gousseau and Pérez, "Non-Local Patch-Based Image Inpainting" (IPOL 2017), and Wexler,
Shechtman and Irani, "Space-Time Completion of Video" (2007). The steps are in :mod:`psal.editing.hole_filling`.
Network: :class:`psal.models.inpainting.Generator`.
"""

import os
from typing import Any

import numpy as np
import torch
from torch import Tensor

from psal.checks import check_word
from psal.editing.hole_filling.coarse_to_fine import fill_hole, has_valid_key
from psal.editing.hole_filling.hole_geometry import PATCH_SIZE
from psal.editing.inpaint_network import fill_with_network
from psal.editing.registry import INPAINT_ATTENTIONS, INPAINT_MODELS
from psal.io.masks import open_mask
from psal.io.pictures import ImageLike, open_picture
from psal.progress import Progress
from psal.seeds import check_seed, draw_seed


def inpaint(
    image: ImageLike,
    mask: ImageLike,
    *,
    model: str = "patches",
    weights: str | os.PathLike[str] | None = None,
    attention: str = "own",
    seed: int | None = None,
    progress: Progress | None = None,
) -> Any:
    """Fill holes of any size and shape with patches of the rest of the picture, or by a network.

    Args:
        image: path, :class:`psal.Photo`, Pillow image, array or tensor; gray or RGB, with or without alpha.
        mask: any of these kinds, of the same size; white (or True) marks the hole.
        model: "patches", or "network", which runs a trained network on the whole picture.
        weights: file of the network, written by ``psal train inpaint`` or by generative-inpainting-pytorch.
        attention: attention to put into the network: "own", the one it was trained with, "psal3", "contextual" or
            "contextual-materialized".
        seed: of the search; None draws one from torch's generator.
        progress: called with the fraction of the work that is done, 0..1.

    Returns:
        A picture of the same kind as ``image`` (a :class:`psal.Photo` for a path), bit for bit the same outside the
        hole. A copy if there is no hole.

    Raises:
        ValueError, TypeError: if an argument is not as described, no patch of known pixels is left, or there is not
            enough memory for the network.

    >>> image = torch.rand(3, 40, 50)
    >>> mask = torch.zeros(40, 50, dtype=torch.bool)
    >>> mask[10:20, 15:30] = True
    >>> filled = inpaint(image, mask, seed=0)
    >>> filled[:, ~mask].equal(image[:, ~mask])
    True
    """
    check_seed(seed)
    check_word("model", model, INPAINT_MODELS)
    check_word("attention", attention, INPAINT_ATTENTIONS)
    if (weights is None) == (model == "network"):
        raise ValueError(
            "model 'network' needs weights: a file that psal train inpaint wrote"
            if weights is None
            else f"weights are those of a network, but model is {model!r}: take model='network'"
        )
    picture = open_picture(image, "image")
    height, width = picture.color.shape[1:]
    hole = open_mask(mask, (height, width), "mask")
    if not hole.any():
        return _restore_known(picture.restore(picture.color), image, hole)
    if hole.all():
        raise ValueError("mask marks the whole image as hole: only the part to fill may be white")
    draw = int(draw_seed(seed))
    if weights is not None:
        filled = fill_with_network(picture.color, hole, weights, attention=attention, seed=draw, progress=progress)
        return _restore_known(picture.restore(filled), image, hole)
    if min(height, width) < PATCH_SIZE:
        raise ValueError(f"image must be at least {PATCH_SIZE} × {PATCH_SIZE} pixels, got {width} × {height}")
    if not has_valid_key(hole):
        raise ValueError(
            f"mask must leave at least one known patch of {PATCH_SIZE} × {PATCH_SIZE} pixels, got a mask that leaves "
            f"{int((~hole).sum())} of {height * width} pixels but no such patch: mark a smaller hole"
        )
    filled = fill_hole(picture.color, hole, seed=draw, progress=progress)
    return _restore_known(picture.restore(filled), image, hole)


def _restore_known(filled: Any, image: ImageLike, hole: Tensor) -> Any:
    """Copy known float pixels from the input: float64 has more digits than the float32 that fills are computed in."""
    if isinstance(image, np.ndarray) and image.dtype.kind == "f":
        filled[~hole.numpy()] = image[~hole.numpy()]
    elif isinstance(image, Tensor) and image.dtype == torch.float64:
        known = ~hole.to(image.device)
        filled[..., known] = image.detach()[..., known]
    return filled
