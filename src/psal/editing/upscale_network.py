"""Enlarge a picture with a trained super-resolution network, the whole picture in one piece."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from psal.editing.network_choice import NetworkChoice
from psal.luminance import luminance
from psal.models import CSNLN
from psal.models.csnln.weights import read_upscaler
from psal.progress import Progress

MIN_SIDE = 8  # pixels; smaller pictures are extended, because the attention needs some keys
LOCAL = "local15"  # in place of exact in-scale attention, which takes small pictures only


def upscale_with_network(
    color: Tensor, scale: float, choice: NetworkChoice, *, seed: int, progress: Progress | None = None
) -> Tensor:
    """Enlarge by the network, in several steps if it enlarges by less.

    Args:
        color: ``[C, H, W]``, 0..1; C is 1 or 3. The network runs on its device.
        scale: factor per side, a power of the network's own.
        choice: a file for :func:`psal.models.csnln.weights.load_upscaler`, and the cross-scale attention.
        seed: of the search.
        progress: called with the fraction of the work that is done, 0..1.

    Returns:
        ``[C, scale · H, scale · W]``, 0..1.

    Raises:
        ValueError: if the weights cannot be used, do not enlarge by this scale, or the picture is too large for exact
            attention.
    """
    file = read_upscaler(choice.weights)
    steps = round(math.log(scale, file.scale))
    if file.scale**steps != scale:
        raise ValueError(f"{choice.weights} enlarges by {file.scale}, or a power of it, but the scale is {scale:g}")
    network = file.build(choice.attention, LOCAL if file.in_scale == "exact" else None, seed).to(color.device)
    large = color.expand(3, -1, -1)
    for step in range(steps):  # before the first one is run
        network.check_size(*(max(file.scale**step * side, MIN_SIDE) for side in color.shape[1:]))
    shares = [file.scale ** (2 * step) for step in range(steps)]
    for step in range(steps):
        before, now = sum(shares[:step]) / sum(shares), shares[step] / sum(shares)
        large = _enlarge(network, large, _part(progress, before, now))
    if progress:
        progress(1.0)
    return large if len(color) == 3 else luminance(large)


def _enlarge(network: CSNLN, color: Tensor, progress: Progress) -> Tensor:
    """Enlarge ``[3, H, W]`` by the network's scale, clamped to 0..1."""
    height, width = color.shape[1:]
    missing = max(MIN_SIDE - width, 0), max(MIN_SIDE - height, 0)
    extended = F.pad(color[None], (0, missing[0], 0, missing[1]), mode="replicate")
    recurrences = 0

    def count(*_: object) -> None:
        nonlocal recurrences
        recurrences += 1
        progress(recurrences / network.depth)

    counting = network.cell.register_forward_hook(count)
    try:
        with torch.no_grad():
            large: Tensor = network(extended)[0]
    finally:
        counting.remove()
    return large[:, : network.scale * height, : network.scale * width].clamp(0, 1)


def _part(progress: Progress | None, before: float, share: float) -> Progress:
    """Return the progress of a part of the work."""

    def report(done: float) -> None:
        if progress:
            progress(min(before + share * done, 0.99))

    return report
