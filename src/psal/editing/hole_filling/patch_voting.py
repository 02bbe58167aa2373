"""Colors of the hole from the matches of the patches that cover it."""

import math
from dataclasses import replace
from itertools import product

import torch
from torch import Tensor

from psal.editing.hole_filling.hole_geometry import PATCH_RADIUS, PATCH_SIZE
from psal.editing.hole_filling.level_fill import LevelFill
from psal.functional import aggregate
from psal.matches import Matches
from psal.sums import mean

VOTE_DECAY = 1.6  # a vote loses this factor per pixel of depth: patches near the border know more
VOTE_VARIANCE = 0.25  # variance of the votes' Gaussian weights, in mean squared distances of the matches


def vote(fill: LevelFill, target: Tensor) -> LevelFill:
    """Set each target pixel to the weighted mean of what the matches of the patches around it propose.

    Args:
        fill: state with matches.
        target: bool ``[h, w]``, the pixels to set.
    """
    matches = Matches(fill.index[None, None], _vote_logits(fill)[None, None])
    values = aggregate(matches, fill.keys[None, :-1], patch_size=PATCH_SIZE)[0]
    return replace(fill, channels=values.where(target, fill.channels))


def best_sources(fill: LevelFill) -> Tensor:
    """Position in the region that the patch with the most weight proposes for each pixel of the hole, int64 ``[2, N]``.

    Returns:
        rows and columns.
    """
    atlas_height, atlas_width = fill.hole.shape
    logits, matches = _vote_logits(fill).flatten(), fill.index.flatten()
    pixel = torch.nonzero(fill.hole.flatten())[:, 0]
    best = torch.full(pixel.shape, -math.inf)
    source = torch.full(pixel.shape, -1)
    for dy, dx in product(range(-PATCH_RADIUS, PATCH_RADIUS + 1), repeat=2):
        # Steps that wrap around to another row end in a window's margin, which has no matches.
        voter = (pixel + dy * atlas_width + dx).clamp(0, atlas_height * atlas_width - 1)
        better = logits[voter] > best
        best = logits[voter].where(better, best)
        source = (matches[voter] - dy * fill.key_width - dx).where(better, source)
    return torch.stack([source // fill.key_width, source % fill.key_width])


def _vote_logits(fill: LevelFill) -> Tensor:
    """Logarithm of each patch's weight in the vote, ``[h, w]``; −∞ for patches without a match."""
    matched = fill.index >= 0
    variance = VOTE_VARIANCE * max(mean(fill.distance[matched]), 1e-8)
    logits = -fill.distance / (2 * variance) - fill.depth * math.log(VOTE_DECAY)
    return logits.where(matched, -math.inf)
