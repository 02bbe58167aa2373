"""Chroma from the patches of a reference that look alike in luminance, from coarse to fine.

Coarse patches tell what a region shows, fine patches where its edges are. Each level prefers matches near those of the
coarser level, and with similar chroma.

Tuned constants, each varied alone: mean PSNR in dB of six DAVIS frames (854 × 480), each colorized from the frame ten
before it. The defaults give 34.59 dB. Seeds change this mean by 0.02 dB, but six pairs are few: differences below
0.3 dB say little.

========================  =======  ===============================
constant                  default  others
========================  =======  ===============================
CONTRAST_WEIGHT           0.4      0: 34.05; 0.2: 34.33; 0.8: 34.57
DEVIATION_WEIGHT          8        0: 34.10; 4: 34.91; 16: 33.93
COARSEST_POSITION_WEIGHT  0.2      0: 34.39; 0.1: 34.33; 0.4: 34.80
POSITION_WEIGHT           0.6      0: 34.22; 0.3: 34.63; 1.2: 34.47
CHROMA_WEIGHT             0.5      0: 34.49; 0.25: 34.55; 1: 34.52
BLUR_SIGMA                2        1: 34.85; 4: 34.12
MIN_DEVIATION             0.05     0.02: 34.74; 0.1: 34.48
MIN_SIDE                  48       24: 34.80; 96: 34.61
PATCH_SIZE                9        7: 34.30; 11: 34.70
NEIGHBORS                 3        1: 34.59; 5: 34.56
========================  =======  ===============================

In :mod:`psal.editing.guided_upsampling`, windows of 3 and 9 pixels give 34.60 and 34.57 dB, and a FLAT_VARIANCE of
1e-3 and 1e-1 gives 34.53 and 34.61 dB.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from scipy import ndimage
from torch import Tensor

from psal.editing.guided_upsampling import upsample_guided
from psal.editing.resizing import halve
from psal.editing.tone_curve import apply_curve, candidate_curves
from psal.functional import aggregate, patch_match
from psal.luminance import chroma, luminance
from psal.progress import Progress
from psal.seeds import add_to_seed

PATCH_SIZE = 9  # pixels per side
NEIGHBORS = 3  # matches per patch
MAX_PIXELS = 3 * 2**20  # matched at most: chroma is smoother than luminance, and memory grows with the pixels
MIN_SIDE = 48  # of the coarsest level: its patches should see a part of the picture, not all of it

# Weights of the features that patches are compared by, beside luminance in 0..1.
CONTRAST_WEIGHT = 0.4  # of the deviation from the local mean in units of the local deviation: edges at any contrast
DEVIATION_WEIGHT = 8.0  # of the local standard deviation: roughness of a surface
COARSEST_POSITION_WEIGHT = 0.2  # of the position in the picture (0..1) at the coarsest level: breaks ties only
POSITION_WEIGHT = 0.6  # of the position that the coarser level found, 0..1
CHROMA_WEIGHT = 0.5  # of the chroma that the coarser level found

BLUR_SIGMA = 2.0  # of the Gaussian window for local means and deviations, in pixels
MIN_DEVIATION = 0.05  # local deviation below which contrast is not amplified further


class ColorLevel(NamedTuple):
    """One size of the picture and of its reference."""

    luma: Tensor  # [1, H, W]
    key_luma: Tensor  # [1, h, w]
    key_chroma: Tensor  # [2, h, w]


class ColorGuess(NamedTuple):
    """Result of one level."""

    chroma: Tensor  # [2, H, W]
    position: Tensor  # [2, H, W], mean position of the matches in the reference, 0..1 along each axis
    certainty: Tensor  # [1, H, W], 0..1


def match_chroma(luma: Tensor, reference: Tensor, seed: int, progress: Progress | None = None) -> Tensor:
    """Chroma of a picture in the colors of a reference, by patch matching.

    Args:
        luma: ``[1, H, W]``, 0..1; patches are matched on its device.
        reference: RGB ``[3, h, w]``, 0..1, on the same device.
        seed: of the search.
        progress: called with the fraction of the work that is done, 0..1.

    Returns:
        ``[2, H, W]``
    """
    small, colors = _bring_to_working_size(luma, reference)
    key_luma = luminance(colors)
    levels = _count_levels(small, key_luma)
    exposed = _match_exposure(small, key_luma, levels, seed)
    pyramid = [ColorLevel(exposed, key_luma, chroma(colors))]
    for _ in range(levels - 1):
        pyramid.append(ColorLevel(*(halve(x) for x in pyramid[-1])))
    guess = None
    for number in reversed(range(levels)):
        guess = _match_level(pyramid.pop(), guess, add_to_seed(seed, number))
        if progress:
            progress(0.95 * 4.0**-number)
    assert guess is not None
    out = upsample_guided(guess.chroma * guess.certainty, small, luma)
    if progress:
        progress(1.0)
    return out


def _bring_to_working_size(luma: Tensor, reference: Tensor) -> tuple[Tensor, Tensor]:
    """Halve both pictures until they are small enough, and neither has more than twice the pixels of the other.

    Pictures of very different size most likely show the same things at different resolutions.
    """
    maps = [_halve_to_limit(luma), _halve_to_limit(reference)]
    for large, small in ((0, 1), (1, 0)):
        while maps[large][0].numel() > 2 * maps[small][0].numel() and min(maps[large].shape[1:]) >= 2 * MIN_SIDE:
            maps[large] = halve(maps[large])
    return maps[0], maps[1]


def _halve_to_limit(x: Tensor) -> Tensor:
    """Halve a map ``[C, H, W]`` once, as chroma needs only half the resolution (JPEG, video), and while too large."""
    if min(x.shape[1:]) >= 2 * MIN_SIDE:
        x = halve(x)
    while x[0].numel() > MAX_PIXELS:
        x = halve(x)
    return x


def _count_levels(*maps: Tensor) -> int:
    side = min(min(x.shape[1:]) for x in maps)
    levels = 1
    while side >= 2 * MIN_SIDE:
        side, levels = side // 2, levels + 1
    return levels


def _match_exposure(luma: Tensor, reference: Tensor, levels: int, seed: int) -> Tensor:
    """Apply the tone curve with which the coarsest level finds the closest matches; ``[1, H, W]``."""
    coarse, key = luma, reference
    for _ in range(levels - 1):
        coarse, key = halve(coarse), halve(key)
    key_features = _features(key)
    curves = [curve.to(luma.device) for curve in candidate_curves(luma.cpu(), reference.cpu())]
    distances = []
    for curve in curves:
        features = _features(apply_curve(curve, coarse))
        spread = sum(float(x.var(dim=(1, 2), correction=0).sum()) for x in (features, key_features))
        query_map, key_map = (torch.cat([x, COARSEST_POSITION_WEIGHT * _grid(x)]) for x in (features, key_features))
        matches = patch_match(query_map[None], key_map[None], patch_size=PATCH_SIZE, neighbors=1, seed=seed)
        # Relative to the spread: a curve that flattens the contrast brings all patches closer.
        distances.append(-float(matches.score.mean()) / max(spread, 1e-6))
    return apply_curve(curves[distances.index(min(distances))], luma)


def _match_level(level: ColorLevel, coarse: ColorGuess | None, seed: int) -> ColorGuess:
    """Match one level and vote for chroma and positions.

    Args:
        level: maps of this size.
        coarse: result of the coarser level; None at the coarsest.
        seed: of the search.
    """
    grid = _grid(level.key_luma)
    if coarse is None:
        query_map = torch.cat([_features(level.luma), COARSEST_POSITION_WEIGHT * _grid(level.luma)])
        key_map = torch.cat([_features(level.key_luma), COARSEST_POSITION_WEIGHT * grid])
    else:
        position, color = (_upsample(x, level.luma.shape[1:]) for x in (coarse.position, coarse.chroma))
        query_map = torch.cat([_features(level.luma), POSITION_WEIGHT * position, CHROMA_WEIGHT * color])
        key_map = torch.cat([_features(level.key_luma), POSITION_WEIGHT * grid, CHROMA_WEIGHT * level.key_chroma])
    neighbors = min(NEIGHBORS, level.key_luma.numel())
    matches = patch_match(query_map[None], key_map[None], patch_size=PATCH_SIZE, neighbors=neighbors, seed=seed)
    del query_map, key_map  # the largest maps
    temperature = max(-float(matches.score[:, 0].mean()), 1e-6)
    votes = torch.cat([level.key_chroma, grid, level.key_chroma.square().sum(0, keepdim=True)])
    mean = aggregate(matches, votes[None], patch_size=PATCH_SIZE, temperature=temperature)[0]
    return ColorGuess(mean[:2], mean[2:4], _certainty(mean[:2], mean[4:]))


def _certainty(mean: Tensor, mean_square: Tensor) -> Tensor:
    """Fraction of the votes' power that is in their mean, ``[1, H, W]``: less where they disagree.

    Args:
        mean: chroma of the votes, ``[2, H, W]``.
        mean_square: mean squared length of the votes, ``[1, H, W]``.
    """
    power = mean.square().sum(0, keepdim=True)
    return power / (power + (mean_square - power).clamp_min(0) + 1e-9)


def _features(luma: Tensor) -> Tensor:
    """Luminance, its normalized local contrast and its local standard deviation, weighted, ``[3, H, W]``."""
    mean = _blur(luma)
    deviation = (_blur(luma * luma) - mean * mean).clamp_min(1e-7).sqrt()
    contrast = (luma - mean) / (deviation + MIN_DEVIATION)
    return torch.cat([luma, CONTRAST_WEIGHT * contrast, DEVIATION_WEIGHT * deviation])


def _blur(x: Tensor) -> Tensor:
    """Gaussian blur of a map ``[1, H, W]``, computed on the CPU."""
    blurred = ndimage.gaussian_filter(x[0].cpu().numpy(), BLUR_SIGMA, truncate=3, mode="nearest")
    return torch.from_numpy(blurred)[None].to(x.device)


def _grid(x: Tensor) -> Tensor:
    """Row and column of each pixel of a map, 0..1 from border to border, ``[2, H, W]``."""
    rows, columns = ((torch.arange(size, device=x.device) + 0.5) / size for size in x.shape[1:])
    return torch.stack(torch.meshgrid(rows, columns, indexing="ij"))


def _upsample(x: Tensor, size: torch.Size) -> Tensor:
    return F.interpolate(x[None], size=tuple(size), mode="bilinear")[0]
