"""Put pixels from other places into a hole without a visible seam."""

from torch import Tensor

from psal.editing.atlas import Atlas
from psal.editing.poisson_solver import divergence, solve_poisson

FADING = 64  # pixels over which colours are bent: in larger holes the gradients of many seams would add up to a drift


def blend_seams(color: Tensor, known: Tensor, atlas: Atlas, hole: Tensor, y: Tensor, x: Tensor) -> Tensor:
    """Copy pixels into a hole, and bend them so that their gradients fit to each other and to the border.

    Between two pixels that come from places beside each other the gradient is the one of that place; across a seam
    it is the stronger of the two that the places propose: their mean would wash out texture.

    Args:
        color: ``[C, H, W]``.
        known: bool ``[H, W]``.
        atlas: windows around the holes.
        hole: bool ``[h, w]``, in the windows.
        y, x: ``[N]``, where in the picture each pixel of the hole is taken from.

    Returns:
        Colours for the pixels of the hole, ``[C, N]``, within those that were pasted or stand around it.
    """
    from_y, from_x = atlas.y.clone(), atlas.x.clone()
    from_y[hole], from_x[hole] = y, x
    height, width = color.shape[1:]
    pasted = color[:, from_y, from_x]  # [C, h, w]

    def towards(dy: int, dx: int) -> Tensor:
        """Colour beside each source, less that at it; 0 where nothing is known."""
        beside = (from_y + dy).clamp(0, height - 1), (from_x + dx).clamp(0, width - 1)
        return (color[:, *beside] - pasted) * known[beside]

    across = _stronger(towards(0, 1)[:, :, :-1], -towards(0, -1)[:, :, 1:])  # from a pixel to the next
    along = _stronger(towards(1, 0)[:, :-1], -towards(-1, 0)[:, 1:])
    across -= pasted[:, :, 1:] - pasted[:, :, :-1]
    along -= pasted[:, 1:] - pasted[:, :-1]
    across *= atlas.real[:, 1:] & atlas.real[:, :-1]
    along *= atlas.real[1:] & atlas.real[:-1]
    bent = pasted + solve_poisson(divergence(across, along), hole, atlas.real, FADING**-2)
    there = pasted[:, atlas.real]
    return bent[:, hole].clamp(there.amin(1, keepdim=True), there.amax(1, keepdim=True))


def _stronger(a: Tensor, b: Tensor) -> Tensor:
    return a.where(a.abs().sum(0) >= b.abs().sum(0), b)
