"""Gradient-domain blending of the copied pixels."""

from torch import Tensor

from psal.editing.hole_filling.poisson_solver import divergence, solve_poisson
from psal.editing.hole_filling.window_atlas import WindowAtlas

CORRECTION_RANGE = 64  # pixels over which corrections fade; without it the seams of a large hole add up to a drift


def blend_sources(color: Tensor, usable: Tensor, atlas: WindowAtlas, hole: Tensor, sources: Tensor) -> Tensor:
    """Copy pixels into a hole and correct them so that their gradients fit each other and the border of the hole.

    Between two pixels copied from adjacent positions the target gradient is the original one. Across a seam it is the
    stronger of the two that the sources propose: their mean would wash out texture.

    Args:
        color: ``[C, H, W]``.
        usable: bool ``[H, W]``, pixels whose gradients may be taken: those that may be copied.
        atlas: windows around the hole.
        hole: bool ``[h, w]``, in the atlas.
        sources: int64 ``[2, N]``, row and column in the image that each pixel of the hole is copied from.

    Returns:
        Colors of the hole's pixels, ``[C, N]``, within the range of the copied and the surrounding ones.
    """
    source_y, source_x = atlas.y.clone(), atlas.x.clone()
    source_y[hole], source_x[hole] = sources
    height, width = color.shape[1:]
    copied = color[:, source_y, source_x]  # [C, h, w]

    def difference(dy: int, dx: int) -> Tensor:
        """Color next to each source minus the color at the source; 0 where that may not be taken."""
        beside = (source_y + dy).clamp(0, height - 1), (source_x + dx).clamp(0, width - 1)
        return (color[:, *beside] - copied) * usable[beside]

    across = _stronger(difference(0, 1)[:, :, :-1], -difference(0, -1)[:, :, 1:]) - copied.diff(dim=2)
    down = _stronger(difference(1, 0)[:, :-1], -difference(-1, 0)[:, 1:]) - copied.diff(dim=1)
    across *= atlas.inside[:, 1:] & atlas.inside[:, :-1]
    down *= atlas.inside[1:] & atlas.inside[:-1]
    corrected = copied + solve_poisson(divergence(across, down), hole, atlas.inside, CORRECTION_RANGE**-2)
    present = copied[:, atlas.inside]
    return corrected[:, hole].clamp(present.amin(1, keepdim=True), present.amax(1, keepdim=True))


def _stronger(a: Tensor, b: Tensor) -> Tensor:
    """The one of two gradients ``[C, h, w]`` with the larger magnitude, per pixel."""
    return a.where(a.abs().sum(0) >= b.abs().sum(0), b)
