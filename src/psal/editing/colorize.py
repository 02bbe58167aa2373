"""Colour a grey picture like a reference, by the patches that look alike in luminance.

From coarse to fine: coarse patches see what a place is, fine ones where its edges are. Every level looks close to
where the coarser one found its matches, and for the colours it found there.
"""

from typing import Any

import torch
import torch.nn.functional as F
from scipy import ndimage
from torch import Tensor

from psal.checks import check_word
from psal.editing.guided_upsampling import upsample_guided
from psal.editing.network_colors import find_chroma_by_network
from psal.editing.resizing import halve
from psal.editing.tone_curve import apply_curve, candidate_curves
from psal.functional import aggregate, patch_match
from psal.io.pictures import ImageLike, Progress, open_picture
from psal.luminance import chroma, join, luminance
from psal.seeds import add_to_seed, check_seed, draw_seed

MODELS = ("patches", "network")
PATCH = 9
NEIGHBORS = 3
MOST_PIXELS = 3 * 2**20  # that are matched: chroma is smoother than luminance, and the memory goes with them
SMALLEST_SIDE = 48  # of the coarsest level: patches there should see a part of the picture, not all of it

# Weights of what patches are compared by. Luminance is 0..1.
NORMALIZED_WEIGHT = 0.4  # luminance minus the mean around, over the deviation around: edges, at any contrast
DEVIATION_WEIGHT = 8.0  # how rough the surface is
WEAK_PLACE_WEIGHT = 0.2  # place in the picture, at the coarsest level: breaks ties only
PLACE_WEIGHT = 0.6  # place that the coarser level found, in pictures
CHROMA_WEIGHT = 0.5  # chroma that the coarser level found

SURROUNDINGS = 2.0  # standard deviation, in pixels, of the window of means and deviations
NOISE = 0.05  # deviation below which contrast is not normalised


def colorize(
    image: ImageLike,
    reference: ImageLike,
    *,
    model: str = "patches",
    seed: int | None = None,
    progress: Progress | None = None,
) -> Any:
    """Give a picture the colours of a reference that shows something similar.

    The luminance, Y = 0.299 R + 0.587 G + 0.114 B of the values as they are stored, stays as it was: for 8-bit
    pictures, that of the result rounds to the value given. The two may differ in size and in exposure.

    Args:
        image: grey, or a colour picture of which the luminance is used; a path, a Pillow image, an array or a
            tensor.
        reference: a colour picture, of any of these kinds. Its alpha is not looked at.
        model: how matches are found: "patches" compares luminance from coarse to fine, "network" is the paper's trained
            network. On video frames the first has the lower error.
        seed: of the search; None draws one from torch's generator.
        progress: called with the share that is done, 0..1.

    Returns:
        The coloured picture: of the kind and size of ``image`` (a :class:`psal.Photo` for a path), always RGB,
        with its alpha.

    Raises:
        ValueError, TypeError: if an argument is not as described.

    >>> colorize(torch.rand(1, 20, 30), torch.rand(3, 24, 17)).shape
    torch.Size([3, 20, 30])
    """
    check_seed(seed)
    check_word("model", model, MODELS)
    picture, colors = open_picture(image), open_picture(reference, "reference").color
    if len(colors) == 1:
        raise ValueError("reference must be a colour picture, got a grey one")
    luma = luminance(picture.color)
    find = find_chroma if model == "patches" else find_chroma_by_network
    return picture.restore(join(luma, find(luma, colors, int(draw_seed(seed)), progress)))


def find_chroma(luma: Tensor, reference: Tensor, seed: int, progress: Progress | None = None) -> Tensor:
    """The chroma that a picture would have in the reference's colours.

    Args:
        luma: ``[1, H, W]``, 0..1.
        reference: ``[3, h, w]``, 0..1.
        seed: of the search.
        progress: called with the share that is done.

    Returns:
        ``[2, H, W]``
    """
    small, colors = _bring_to_working_size(luma, reference)
    keys = luminance(colors)
    levels = _count_levels(small, keys)
    matched = _choose_exposure(small, keys, levels, seed)  # as the reference would show it
    pyramid = [(matched, keys, chroma(colors))]
    for _ in range(levels - 1):
        pyramid.append(tuple(halve(x) for x in pyramid[-1]))  # type: ignore[arg-type]
    found = places = certainty = None
    for number in reversed(range(levels)):
        query, key, value = pyramid.pop()
        found, places, certainty = _match_level(query, key, value, found, places, add_to_seed(seed, number))
        if progress:
            progress(0.95 * 4.0**-number)
    assert found is not None
    assert certainty is not None
    out = upsample_guided(found * certainty, small, luma)
    if progress:
        progress(1.0)
    return out


def _bring_to_working_size(luma: Tensor, reference: Tensor) -> tuple[Tensor, Tensor]:
    """Both halved until they can be matched; and until one is no more than twice as large as the other.

    Of two pictures of very different size the larger one most likely shows the same things, with more pixels.
    """
    maps = [luma, reference]
    for place, x in enumerate(maps):
        first = True  # chroma needs half the resolution only, as in JPEG and video
        while (first and min(x.shape[1:]) >= 2 * SMALLEST_SIDE) or x[0].numel() > MOST_PIXELS:
            x, first = halve(x), False
        maps[place] = x
    for place, other in ((0, 1), (1, 0)):
        while maps[place][0].numel() > 2 * maps[other][0].numel() and min(maps[place].shape[1:]) >= 2 * SMALLEST_SIDE:
            maps[place] = halve(maps[place])
    return maps[0], maps[1]


def _count_levels(*maps: Tensor) -> int:
    side = min(min(x.shape[1:]) for x in maps)
    levels = 1
    while side >= 2 * SMALLEST_SIDE:
        side, levels = side // 2, levels + 1
    return levels


def _choose_exposure(luma: Tensor, reference: Tensor, levels: int, seed: int) -> Tensor:
    """The luma after the curve with which the coarsest level finds the closest matches."""
    coarse, key = luma, reference
    for _ in range(levels - 1):
        coarse, key = halve(coarse), halve(key)
    curves = candidate_curves(luma, reference)
    distances = []
    for curve in curves:
        query_map, key_map = _describe(apply_curve(curve, coarse)), _describe(key)
        spread = sum(float(x.var(dim=(1, 2), correction=0).sum()) for x in (query_map, key_map))
        query_map, key_map = (torch.cat([x, WEAK_PLACE_WEIGHT * _grid(x)]) for x in (query_map, key_map))
        matches = patch_match(query_map[None], key_map[None], patch_size=PATCH, neighbors=1, seed=seed)
        # Relative to the spread: a curve that takes the contrast away brings everything close together.
        distances.append(-float(matches.score.mean()) / max(spread, 1e-6))
    return apply_curve(curves[distances.index(min(distances))], luma)


def _match_level(
    query: Tensor, key: Tensor, value: Tensor, found: Tensor | None, places: Tensor | None, seed: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Match one level and gather chroma and places.

    Args:
        query: luma ``[1, H, W]``.
        key: luma ``[1, h, w]`` of the reference.
        value: its chroma ``[2, h, w]``.
        found: chroma that the coarser level found, or None.
        places: where it found it, as the coordinates of :func:`_grid`, or None.

    Returns:
        chroma ``[2, H, W]``, places ``[2, H, W]``, and how far the chroma is to be trusted ``[1, H, W]``.
    """
    size, grid = query.shape[1:], _grid(key)
    if found is None or places is None:
        query_map = torch.cat([_describe(query), WEAK_PLACE_WEIGHT * _grid(query)])
        key_map = torch.cat([_describe(key), WEAK_PLACE_WEIGHT * grid])
    else:
        query_map = torch.cat(
            [_describe(query), PLACE_WEIGHT * _double(places, size), CHROMA_WEIGHT * _double(found, size)]
        )
        key_map = torch.cat([_describe(key), PLACE_WEIGHT * grid, CHROMA_WEIGHT * value])
    neighbors = min(NEIGHBORS, key.numel())
    matches = patch_match(query_map[None], key_map[None], patch_size=PATCH, neighbors=neighbors, seed=seed)
    del query_map, key_map
    temperature = max(-float(matches.score[:, 0].mean()), 1e-6)
    votes = torch.cat([value, grid, value.square().sum(0, keepdim=True)])
    out = aggregate(matches, votes[None], patch_size=PATCH, temperature=temperature)[0]
    return out[:2], out[2:4], _certainty(out[:2], out[4:])


def _certainty(found: Tensor, square: Tensor) -> Tensor:
    """How far the chroma is to be trusted, ``[1, H, W]`` in 0..1: less where the votes disagree.

    Args:
        found: mean chroma of the votes, ``[2, H, W]``.
        square: mean square of it, ``[1, H, W]``.
    """
    power = found.square().sum(0, keepdim=True)
    return power / (power + (square - power).clamp_min(0) + 1e-9)


def _describe(luma: Tensor) -> Tensor:
    """What patches are compared by, ``[3, H, W]``: luminance, its local contrast normalised, its deviation."""
    mean = _blur(luma)
    deviation = (_blur(luma * luma) - mean * mean).clamp_min(1e-7).sqrt()
    return torch.cat([luma, NORMALIZED_WEIGHT * (luma - mean) / (deviation + NOISE), DEVIATION_WEIGHT * deviation])


def _blur(x: Tensor) -> Tensor:
    """Gaussian blur of a map ``[1, H, W]``."""
    return torch.from_numpy(ndimage.gaussian_filter(x[0].numpy(), SURROUNDINGS, truncate=3, mode="nearest"))[None]


def _grid(x: Tensor) -> Tensor:
    """Coordinates of a map's pixels, 0..1 from border to border, ``[2, H, W]``."""
    rows, columns = ((torch.arange(n) + 0.5) / n for n in x.shape[1:])
    return torch.stack(torch.meshgrid(rows, columns, indexing="ij"))


def _double(x: Tensor, size: torch.Size) -> Tensor:
    return F.interpolate(x[None], size=tuple(size), mode="bilinear")[0]
