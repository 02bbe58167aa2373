"""Chroma from the patches of a reference that look alike in luminance, from coarse to fine.

Coarse patches tell what a region shows, fine patches where its edges are. Each level prefers matches near those of the
coarser level, and with similar chroma.

Tuned constants, each varied alone from the defaults of then, with patches of 9 pixels at all levels: mean PSNR in dB of
six DAVIS frames (854 × 480), each colorized from the frame ten before it. The defaults give 34.59 dB. Seeds change this
mean by 0.02 dB, but six pairs are few: differences below 0.3 dB say little.

========================  =======  ===============================
constant                  default  others
========================  =======  ===============================
CONTRAST_WEIGHT           0.4      0: 34.05; 0.2: 34.33; 0.8: 34.57
DEVIATION_WEIGHT          8        0: 34.10; 4: 34.91; 16: 33.93
COARSEST_POSITION_WEIGHT  0.2      0: 34.39; 0.1: 34.33; 0.4: 34.80
POSITION_WEIGHT           0.6      0: 34.22; 0.3: 34.63; 1.2: 34.47
CHROMA_WEIGHT             0.5      0: 34.49; 0.25: 34.55; 1: 34.52
BLUR_SIGMA                2        4: 34.12 (1 was taken later)
MIN_DEVIATION             0.05     0.1: 34.48 (0.02 was taken later)
MIN_SIDE                  48       24: 34.80; 96: 34.61
PATCH_SIZE                9        7: 34.30; 11: 34.70
NEIGHBORS                 3        1: 34.59; 5: 34.56
========================  =======  ===============================

BLUR_SIGMA, COARSEST_PATCH_SIZE and MIN_DEVIATION were chosen afterwards, one after the other, on 30 pairs of frames of
the six training sequences of DAVIS and on 36 photographs (two overlapping crops of each, one of them smaller and
brighter): how many times the error is below that of the gray picture, without fading.

==================================  ===============  ===============  ===============  ======
setting                             10 frames apart  20 frames apart  40 frames apart  photos
==================================  ===============  ===============  ===============  ======
BLUR_SIGMA 2, all patches 9 pixels  5.14             4.33             1.71             6.59
BLUR_SIGMA 1                        5.42             4.58             2.00             7.15
… and COARSEST_PATCH_SIZE 11        5.57             4.75             1.98             7.51
… or 13                             5.47             4.75             1.94             7.26
… 11, and MIN_DEVIATION 0.02        5.58             4.79             2.15             7.66
… or 0.01                           5.57             4.94             2.12             7.65
… or 0.1                            5.50             3.84             2.00             7.16
==================================  ===============  ===============  ===============  ======

What did not help: mixing in the colors of coarser levels, of confident pixels of similar luminance nearby, or of all
pixels of the reference with that luminance. The weights were fitted to the share of votes that agree, to the cost, or
to whether matches in both directions meet. Tested on another sequence, the optimal ones gain less than 4 % on frames 10
apart, and they lose on photographs. A half-size, an enlarged or a mirrored copy of the reference beside it makes video
worse.

In :mod:`psal.editing.guided_upsampling`, windows of 3 and 9 pixels give 34.60 and 34.57 dB, and a FLAT_VARIANCE of
1e-3 and 1e-1 gives 34.53 and 34.61 dB.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from scipy import ndimage
from torch import Tensor

from psal.editing.colorize_references import Reference, count_keys, grid, places, stack, valid_keys
from psal.editing.guided_upsampling import upsample_guided
from psal.editing.resizing import halve
from psal.editing.tone_curve import apply_curve, candidate_curves
from psal.functional import aggregate, patch_match
from psal.luminance import chroma, luminance
from psal.progress import Progress
from psal.seeds import add_to_seed
from psal.sums import mean

PATCH_SIZE = 9  # pixels per side
COARSEST_PATCH_SIZE = 11  # of the coarsest level, which should see more of the surroundings
NEIGHBORS = 3  # matches per patch
MAX_PIXELS = 3 * 2**20  # matched at most: chroma is smoother than luminance, and memory grows with the pixels
MIN_SIDE = 48  # of the coarsest level: its patches should see a part of the picture, not all of it

# Weights of the features that patches are compared by, beside luminance in 0..1.
CONTRAST_WEIGHT = 0.4  # of the deviation from the local mean in units of the local deviation: edges at any contrast
DEVIATION_WEIGHT = 8.0  # of the local standard deviation: roughness of a surface
COARSEST_POSITION_WEIGHT = 0.2  # of the position in the picture (0..1) at the coarsest level: breaks ties only
POSITION_WEIGHT = 0.6  # of the position that the coarser level found, 0..1
CHROMA_WEIGHT = 0.5  # of the chroma that the coarser level found

BLUR_SIGMA = 1.0  # of the Gaussian window for local means and deviations, in pixels
MIN_DEVIATION = 0.02  # local deviation below which contrast is not amplified further


class ColorLevel(NamedTuple):
    """One size of the picture and of its references."""

    luma: Tensor  # [1, H, W]
    references: list[Reference]


class ColorGuess(NamedTuple):
    """Result of one level."""

    chroma: Tensor  # [2, H, W]
    position: Tensor  # [2, H, W], mean place of the matches in the references
    certainty: Tensor  # [1, H, W], 0..1


def match_chroma(luma: Tensor, references: list[Tensor], seed: int, progress: Progress | None = None) -> Tensor:
    """Chroma of a picture in the colors of references, by patch matching.

    Args:
        luma: ``[1, H, W]``, 0..1; patches are matched on its device.
        references: RGB ``[3, h, w]``, 0..1, on the same device.
        seed: of the search.
        progress: called with the fraction of the work that is done, 0..1.

    Returns:
        ``[2, H, W]``
    """
    small, pyramid = _pyramid(luma, references, seed)
    guess = None
    for number in reversed(range(len(pyramid))):
        guess = _match_level(pyramid.pop(), guess, add_to_seed(seed, number))
        if progress:
            progress(0.95 * 4.0**-number)
    assert guess is not None
    out = upsample_guided(guess.chroma * guess.certainty, small, luma)
    if progress:
        progress(1.0)
    return out


def coarsest_level(luma: Tensor, references: list[Tensor], seed: int) -> ColorLevel:
    """Return the level that :func:`match_chroma` begins with."""
    return _pyramid(luma, references, seed)[1][-1]


def _pyramid(luma: Tensor, references: list[Tensor], seed: int) -> tuple[Tensor, list[ColorLevel]]:
    """Luminance of the picture at working size, and all levels at the exposure of the references, finest first."""
    small, colors = _bring_to_working_size(luma, references)
    lumas = [luminance(color) for color in colors]
    levels = _count_levels(small, *lumas)
    exposed = _match_exposure(small, lumas, levels, seed)
    keys = [Reference(key_luma, chroma(color)) for key_luma, color in zip(lumas, colors, strict=True)]
    pyramid = [ColorLevel(exposed, keys)]
    for _ in range(levels - 1):
        finer = pyramid[-1]
        pyramid.append(ColorLevel(halve(finer.luma), [Reference(*map(halve, key)) for key in finer.references]))
    return small, pyramid


def _bring_to_working_size(luma: Tensor, references: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
    """Halve all pictures until they are small enough, and none has more than twice the pixels of the other kind.

    Pictures of very different size most likely show the same things at different resolutions.
    """
    picture = _halve_to_limit(luma, MAX_PIXELS)
    colors = [_halve_to_limit(reference, MAX_PIXELS // len(references)) for reference in references]
    picture = _halve_to(2 * max(color[0].numel() for color in colors), picture)
    return picture, [_halve_to(2 * picture.numel(), color) for color in colors]


def _halve_to_limit(x: Tensor, limit: int) -> Tensor:
    """Halve a map ``[C, H, W]`` once, as chroma needs only half the resolution (JPEG, video), and while too large."""
    if min(x.shape[1:]) >= 2 * MIN_SIDE:
        x = halve(x)
    while x[0].numel() > limit:
        x = halve(x)
    return x


def _halve_to(pixels: int, x: Tensor) -> Tensor:
    """Halve a map ``[C, H, W]`` while it has more pixels, unless that makes it smaller than a level may be."""
    while x[0].numel() > pixels and min(x.shape[1:]) >= 2 * MIN_SIDE:
        x = halve(x)
    return x


def _count_levels(*maps: Tensor) -> int:
    side = min(min(x.shape[1:]) for x in maps)
    levels = 1
    while side >= 2 * MIN_SIDE:
        side, levels = side // 2, levels + 1
    return levels


def _match_exposure(luma: Tensor, references: list[Tensor], levels: int, seed: int) -> Tensor:
    """Apply the tone curve with which the coarsest level finds the closest matches; ``[1, H, W]``."""
    coarse, keys = luma, references
    for _ in range(levels - 1):
        coarse, keys = halve(coarse), [halve(key) for key in keys]
    key_features = [features(key) for key in keys]
    key_map = stack([torch.cat([x, COARSEST_POSITION_WEIGHT * grid(x)]) for x in key_features])
    key_mask = valid_keys([Reference(key, key) for key in keys])
    key_spread = _spread(torch.cat([x.flatten(1) for x in key_features], dim=1))
    all_lumas = torch.cat([reference.flatten().cpu() for reference in references])
    curves = [curve.to(luma.device) for curve in candidate_curves(luma.cpu(), all_lumas)]
    distances = []
    for curve in curves:
        found = features(apply_curve(curve, coarse))
        query_map = torch.cat([found, COARSEST_POSITION_WEIGHT * grid(found)])
        matches = patch_match(
            query_map[None], key_map[None], patch_size=PATCH_SIZE, neighbors=1, seed=seed, key_mask=key_mask
        )
        # Relative to the spread: a curve that flattens the contrast brings all patches closer.
        spread = _spread(found.flatten(1)) + key_spread
        distances.append(-mean(matches.score) / max(spread, 1e-6))
    return apply_curve(curves[distances.index(min(distances))], luma)


def _spread(x: Tensor) -> float:
    """Sum of the variances of features ``[C, n]``."""
    return float(x.var(dim=1, correction=0).sum())


def _match_level(level: ColorLevel, coarse: ColorGuess | None, seed: int) -> ColorGuess:
    """Match one level and vote for chroma and positions.

    Args:
        level: maps of this size.
        coarse: result of the coarser level; None at the coarsest.
        seed: of the search.
    """
    keys, at = level.references, places(level.references)
    if coarse is None:
        patch_size = COARSEST_PATCH_SIZE
        query_map = torch.cat([features(level.luma), COARSEST_POSITION_WEIGHT * grid(level.luma)])
        own = [COARSEST_POSITION_WEIGHT * grid(key.luma) for key in keys]
    else:
        patch_size = PATCH_SIZE
        position, color = (_upsample(x, level.luma.shape[1:]) for x in (coarse.position, coarse.chroma))
        query_map = torch.cat([features(level.luma), POSITION_WEIGHT * position, CHROMA_WEIGHT * color])
        own = [
            torch.cat([POSITION_WEIGHT * place, CHROMA_WEIGHT * key.chroma])
            for place, key in zip(at, keys, strict=True)
        ]
    key_map = stack([torch.cat([features(key.luma), x]) for key, x in zip(keys, own, strict=True)])
    del own
    matches = patch_match(
        query_map[None], key_map[None], patch_size=patch_size, neighbors=min(NEIGHBORS, count_keys(keys)), seed=seed,
        key_mask=valid_keys(keys),
    )  # fmt: skip
    del query_map, key_map  # the largest maps
    temperature = max(-mean(matches.score[:, 0]), 1e-6)
    votes = stack(
        [
            torch.cat([key.chroma, place, key.chroma.square().sum(0, keepdim=True)])
            for key, place in zip(keys, at, strict=True)
        ]
    )
    voted = aggregate(matches, votes[None], patch_size=patch_size, temperature=temperature)[0]
    return ColorGuess(voted[:2], voted[2:4], _certainty(voted[:2], voted[4:]))


def _certainty(mean_chroma: Tensor, mean_square: Tensor) -> Tensor:
    """Fraction of the votes' power that is in their mean, ``[1, H, W]``: less where they disagree.

    Args:
        mean_chroma: of the votes, ``[2, H, W]``.
        mean_square: mean squared length of the votes, ``[1, H, W]``.
    """
    power = mean_chroma.square().sum(0, keepdim=True)
    return power / (power + (mean_square - power).clamp_min(0) + 1e-9)


def features(luma: Tensor, blur_sigma: float = BLUR_SIGMA, min_deviation: float = MIN_DEVIATION) -> Tensor:
    """Luminance, its normalized local contrast and its local standard deviation, weighted, ``[3, H, W]``."""
    local_mean = _blur(luma, blur_sigma)
    deviation = (_blur(luma * luma, blur_sigma) - local_mean * local_mean).clamp_min(1e-7).sqrt()
    contrast = (luma - local_mean) / (deviation + min_deviation)
    return torch.cat([luma, CONTRAST_WEIGHT * contrast, DEVIATION_WEIGHT * deviation])


def _blur(x: Tensor, sigma: float) -> Tensor:
    """Gaussian blur of a map ``[1, H, W]``, computed on the CPU."""
    blurred = ndimage.gaussian_filter(x[0].cpu().numpy(), sigma, truncate=3, mode="nearest")
    return torch.from_numpy(blurred)[None].to(x.device)


def _upsample(x: Tensor, size: torch.Size) -> Tensor:
    return F.interpolate(x[None], size=tuple(size), mode="bilinear")[0]
