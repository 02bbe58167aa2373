"""Gradient-domain blending of the copied pixels."""

import torch
from torch import Tensor

from psal.editing.hole_filling.hole_geometry import PATCH_SIZE
from psal.editing.hole_filling.poisson_solver import divergence, solve_poisson
from psal.editing.hole_filling.window_atlas import WindowAtlas, take
from psal.sums import window_sum

CORRECTION_RANGE = 64  # pixels over which corrections fade; without it the seams of a large hole add up to a drift

MAX_STEP = 5.0  # multiple of the local contrast: larger steps across a seam are kept. By eye, on frames of DAVIS
MIN_CONTRAST = 0.03  # added to it, so that noise is blended on flat surfaces
MAX_NATURAL_STEP = 1.5  # multiple of the largest step in the known pixels around: larger ones are blended all the same


def blend_sources(color: Tensor, usable: Tensor, atlas: WindowAtlas, hole: Tensor, sources: Tensor) -> Tensor:
    """Copy pixels into a hole and correct them so that their gradients fit each other and the border of the hole.

    Between two pixels copied from adjacent positions the target gradient is the original one. Across a seam it is the
    stronger of the two that the sources propose: their mean would wash out texture. A step across a seam is kept where
    it is much larger than the contrast around it, as between a shadow and the ground: blended, it would turn to smoke.

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
    flat, flat_usable = color.flatten(1), usable.flatten()
    copied = take(flat, source_y * width + source_x)  # [C, h, w]

    def difference(dy: int, dx: int) -> Tensor:
        """Color next to each source minus the color at the source; 0 where that may not be taken."""
        beside = (source_y + dy).clamp(0, height - 1) * width + (source_x + dx).clamp(0, width - 1)
        return take(flat, beside).sub_(copied).mul_(take(flat_usable, beside))

    right, below = difference(0, 1), difference(1, 0)
    limit = MAX_STEP * (_local_contrast(right, below, atlas.inside) + MIN_CONTRAST)
    across = _stronger(right[:, :, :-1], -difference(0, -1)[:, :, 1:]) - copied.diff(dim=2)
    down = _stronger(below[:, :-1], -difference(-1, 0)[:, 1:]) - copied.diff(dim=1)
    natural = MAX_NATURAL_STEP * torch.maximum(right.abs(), below.abs())[:, atlas.inside].amax()
    across *= _share_blended(across, torch.maximum(limit[:, 1:], limit[:, :-1]), natural)
    down *= _share_blended(down, torch.maximum(limit[1:], limit[:-1]), natural)
    across *= atlas.inside[:, 1:] & atlas.inside[:, :-1]
    down *= atlas.inside[1:] & atlas.inside[:-1]
    corrected = copied + solve_poisson(divergence(across, down), hole, atlas.inside, CORRECTION_RANGE**-2)
    present = copied[:, atlas.inside]
    return corrected[:, hole].clamp(present.amin(1, keepdim=True), present.amax(1, keepdim=True))


def _stronger(a: Tensor, b: Tensor) -> Tensor:
    """The one of two gradients ``[C, h, w]`` with the larger magnitude, per pixel."""
    return a.where(a.abs().sum(0) >= b.abs().sum(0), b)


def _local_contrast(right: Tensor, below: Tensor, inside: Tensor) -> Tensor:
    """Mean over a patch of how much the sources differ from their neighbors ``[C, h, w]``: ``[h, w]``."""
    contrast = (right.abs().amax(0) + below.abs().amax(0)) * inside
    sums = window_sum(torch.stack([contrast, inside.float()]), PATCH_SIZE)
    return sums[0] / sums[1].clamp_min(1)


def _share_blended(step: Tensor, limit: Tensor, natural: Tensor) -> Tensor:
    """How much of steps ``[C, h, w]`` to blend, ``[h, w]``.

    Steps that are small against ``limit``, ``[h, w]``, are blended. Larger ones are edges, and kept, unless they are
    larger than ``natural``, 0-d: this picture has no such edges, so they are differences between two shades.
    """
    size = step.abs().amax(0)
    return torch.exp(-((size / limit) ** 2)).where(size <= natural, 1.0)
