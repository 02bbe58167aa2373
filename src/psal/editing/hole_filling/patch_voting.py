"""Colors of the hole from the matches of the patches that cover it."""

import math
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor

from psal.editing.hole_filling.hole_geometry import PATCH_RADIUS, PATCH_SIZE
from psal.editing.hole_filling.level_fill import LevelFill
from psal.editing.hole_filling.window_atlas import take
from psal.functional import aggregate
from psal.matches import Matches
from psal.sums import mean

VOTE_DECAY = 2.0  # a vote loses this factor per pixel of depth: patches near the border know more
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
    logits = _vote_logits(fill)[None]
    # The best of each row of the window, then the best of those: a seventh of the comparisons.
    of_row, in_row = F.max_pool2d(logits, (1, PATCH_SIZE), 1, (0, PATCH_RADIUS), return_indices=True)
    _, row = F.max_pool2d(of_row, (PATCH_SIZE, 1), 1, (PATCH_RADIUS, 0), return_indices=True)
    pixel = torch.nonzero(fill.hole.flatten())[:, 0]
    voter = take(in_row.flatten(), take(row.flatten(), pixel))
    match, width, atlas_width = take(fill.index.flatten(), voter), fill.key_width, fill.hole.shape[1]
    y = match // width + pixel // atlas_width - voter // atlas_width
    x = match % width + pixel % atlas_width - voter % atlas_width
    return torch.stack([y, x])


def _vote_logits(fill: LevelFill) -> Tensor:
    """Logarithm of each patch's weight in the vote, ``[h, w]``; −∞ for patches without a match."""
    matched = fill.index >= 0
    variance = VOTE_VARIANCE * max(mean(fill.distance[matched]), 1e-8)
    logits = -fill.distance / (2 * variance) - fill.depth * math.log(VOTE_DECAY)
    return logits.where(matched, -math.inf)
