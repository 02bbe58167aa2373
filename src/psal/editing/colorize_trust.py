"""Whether a reference shows what a picture shows, as far as luminance tells.

Two signs, each of which is enough:

- Matches in both directions meet: from a patch of the picture to the reference, and from there back, one lands nearby.
- Luminance and contrast are distributed alike, as in two views of one scene in fast motion.

Chosen on 39 pairs of frames of DAVIS's train sequences, 10 apart, and 60 random pairs of different photographs (BSDS500
and ImageNet): the share of round trips that come back was 0.00 to 0.11 for different photographs, and above 0.12 for
all but two pairs of frames; the distance of the distributions was above 0.099 for different photographs, and 0.069 for
the first of those two pairs. The cost of the matches did not separate them.
"""

import torch
from torch import Tensor

from psal.editing.colorize_patches import (
    COARSEST_POSITION_WEIGHT,
    CONTRAST_WEIGHT,
    NEIGHBORS,
    PATCH_SIZE,
    coarsest_level,
    features,
)
from psal.editing.colorize_references import count_keys, grid, stack, valid_keys
from psal.editing.resizing import halve
from psal.functional import aggregate, patch_match
from psal.luminance import luminance
from psal.matches import Matches
from psal.seeds import add_to_seed
from psal.sums import mean

# Not those that colors are found with: with a BLUR_SIGMA of 1, 4 of 60 random pairs of photographs pass, not 2.
BLUR_SIGMA, MIN_DEVIATION = 2.0, 0.05
NEARBY = 0.04  # of a side, the distance at which a round trip counts as come back
FEW_RETURNS, MANY_RETURNS = 0.11, 0.15  # share of round trips at which trust begins, and is complete
CLOSE_TONES, FAR_TONES = 0.07, 0.09  # distance of the distributions at which trust is complete, and ends
TONE_SIDE = 192  # distributions are compared at less than this side, where noise and sharpness matter less
TONE_QUANTILES = 33


def trust(luma: Tensor, references: list[Tensor], seed: int) -> float:
    """Tell how much the colors of the references can be trusted.

    Args:
        luma: ``[1, H, W]``, 0..1.
        references: RGB ``[3, h, w]``, 0..1, on the same device.
        seed: of the search.

    Returns:
        0..1
    """
    share = _returning_share(luma, references, seed)
    by_returns = (share - FEW_RETURNS) / (MANY_RETURNS - FEW_RETURNS)
    distance = min(_tone_distance(luma, luminance(reference)) for reference in references)
    by_tones = (FAR_TONES - distance) / (FAR_TONES - CLOSE_TONES)
    return min(max(by_returns, by_tones, 0.0), 1.0)


def _returning_share(luma: Tensor, references: list[Tensor], seed: int) -> float:
    """Share of the pixels that a round trip through the references brings back nearby."""
    level = coarsest_level(luma, references, seed)
    own = grid(level.luma)
    picture = torch.cat([_features(level.luma), COARSEST_POSITION_WEIGHT * own])[None]
    keys = [
        torch.cat([_features(reference.luma), COARSEST_POSITION_WEIGHT * grid(reference.luma)])
        for reference in level.references
    ]
    stacked, valid = stack(keys)[None], valid_keys(level.references)
    there = patch_match(
        picture, stacked, patch_size=PATCH_SIZE, neighbors=min(NEIGHBORS, count_keys(level.references)), seed=seed,
        key_mask=valid,
    )  # fmt: skip
    back = patch_match(
        stacked, picture, patch_size=PATCH_SIZE, neighbors=min(NEIGHBORS, own[0].numel()), seed=add_to_seed(seed, 1),
        query_mask=valid,
    )  # fmt: skip
    returned = _vote(there, _vote(back, own))
    return int(((returned - own).square().sum(0).sqrt() < NEARBY).sum()) / returned[0].numel()


def _features(luma: Tensor) -> Tensor:
    return features(luma, BLUR_SIGMA, MIN_DEVIATION)


def _vote(matches: Matches, value: Tensor) -> Tensor:
    best = matches.score[:, 0]
    temperature = max(-mean(best[best.isfinite()]), 1e-6)
    return aggregate(matches, value[None], patch_size=PATCH_SIZE, temperature=temperature)[0]


def _tone_distance(luma: Tensor, reference: Tensor) -> float:
    """Mean distance of the quantiles of luminance and of contrast."""
    quantiles = [_tones(x) for x in (luma, reference)]
    return float((quantiles[0] - quantiles[1]).abs().mean(1).sum())


def _tones(luma: Tensor) -> Tensor:
    """Quantiles of luminance and contrast, ``[2, 33]``."""
    while luma.shape[1] >= TONE_SIDE:
        luma = halve(luma)
    found = _features(luma)[:2].cpu()
    found[1] /= CONTRAST_WEIGHT
    return torch.quantile(found.flatten(1), torch.linspace(0.02, 0.98, TONE_QUANTILES), dim=1).T
