"""One level of the pyramid: search patches for the hole and its surroundings, and let them vote."""

import math
from dataclasses import dataclass, replace

import numpy as np
import torch
import torch.nn.functional as F
from scipy import ndimage
from torch import Tensor

import psal
from psal.editing.atlas import Atlas, make_atlas
from psal.editing.pyramid import Level
from psal.seeds import add_to_seed

PATCH = 7
REACH = PATCH // 2
SAMPLED_KEYS = 4096  # keys that a ring of the coarsest level is compared with
WINDOWS = (16, 8)  # half-widths around a match in which the search draws
ROOM = 48  # pixels around all matches that a finer level may move to
SWEEPS = 2
ENOUGH_KEYS = 64  # for a part of a level, or a coarse level, to be of use
MATCH_DECAY, MATCH_FLOOR = 1.6, 0.02  # how much less a pixel counts in matching, a step deeper in the hole
VOTE_DECAY = 1.6  # and a patch in voting
VOTE_SPREAD = 0.25  # of the mean distance: where a patch's vote falls to e^−½


@dataclass(frozen=True)
class Filling:
    """A hole while it is filled. Maps [H, W] are of the picture, [h, w] of the windows around the holes."""

    corner: tuple[int, int]  # of the part of the level that is looked at
    keys: Tensor  # [C + 1, H, W]: the channels less ½, so that less is lost when they cancel, and Σ of their squares
    open: Tensor  # [H, W], where all of a patch is known, so that it can be a key
    atlas: Atlas
    channels: Tensor  # [C, h, w], less ½: known pixels and what the hole holds so far
    hole: Tensor  # [h, w]
    depth: Tensor  # [h, w], steps to the nearest known pixel
    queries: Tensor  # [h, w], where a patch touches the hole
    index: Tensor  # [h, w], each query's match in the picture, or −1
    distance: Tensor  # [h, w], mean squared distance of the matched patches


def start_level(level: Level, corner: tuple[int, int] = (0, 0), end: tuple[int, int] | None = None) -> Filling:
    """A level, or a part of it that holds all of the hole, with nothing filled and nothing matched."""
    height, width = end or level.known.shape
    part = slice(corner[0], height), slice(corner[1], width)
    known, channels = level.known[part], level.features(*part) - 0.5
    touched = touches_hole(~known)
    atlas = make_atlas(touched, REACH)
    shape = atlas.real.shape
    return Filling(
        corner=corner,
        keys=torch.cat([channels, channels.square().sum(0, keepdim=True)]),
        open=open_keys(touched),
        atlas=atlas,
        channels=atlas.cut(channels),
        hole=atlas.cut(~known) & atlas.real,
        depth=atlas.cut(depth_of(~known)),
        queries=atlas.cut(touched) & atlas.real,
        index=torch.full(shape, -1),
        distance=torch.zeros(shape),
    )


def depth_of(hole: Tensor) -> Tensor:
    """Steps, diagonal ones too, from each pixel of a hole to the nearest that is known, ``[H, W]``."""
    steps = ndimage.distance_transform_cdt(hole.numpy(), "chessboard")
    return torch.from_numpy(steps.astype(np.float32))


def box_of(mask: Tensor) -> tuple[slice, slice]:
    """Rows and columns that hold all of a mask ``[H, W]``, which is not empty."""
    rows, columns = ndimage.find_objects(mask.to(torch.uint8).numpy())[0]
    return rows, columns


def touches_hole(hole: Tensor) -> Tensor:
    """Where a patch holds a pixel of the hole, ``[H, W]``."""
    return torch.from_numpy(ndimage.maximum_filter(hole.numpy(), PATCH, mode="constant", cval=False))


def open_keys(touched: Tensor) -> Tensor:
    """Where all of a patch lies in the picture and none of it in the hole, ``[H, W]``."""
    is_open = ~touched
    is_open[:REACH], is_open[-REACH:], is_open[:, :REACH], is_open[:, -REACH:] = False, False, False, False
    return is_open


def search(filling: Filling, seed: int, weight: Tensor, queries: Tensor, candidates: Tensor) -> Filling:
    """Match the queries' patches, each pixel of them with its weight.

    Σ w (q − k)² is minus a product with one channel more, up to what is the same for all keys:
    (2 w q, −w) · (k, k²).

    Args:
        filling: as it is.
        seed: of the search.
        weight: ``[h, w]``, how much a pixel counts.
        queries: bool ``[h, w]``, which to match; the others keep what they have.
        candidates: ``[m, h, w]``, matches to start from, −1 for none.
    """
    weight = weight * filling.atlas.real
    query = torch.cat([2 * weight * filling.channels, -weight[None]])
    found = psal.patch_match(
        query[None], filling.keys[None], patch_size=PATCH, neighbors=1, similarity="dot", iterations=SWEEPS,
        init=psal.Matches(candidates[None], torch.zeros(candidates[None].shape)),
        key_mask=filling.open[None, None], query_mask=queries[None, None], seed=seed,
    )  # fmt: skip
    total, weights = (_patch_sum(x) for x in (weight * filling.channels.square().sum(0), weight))
    distance = ((total - found.score[0, 0]) / weights.clamp_min(1e-6)).clamp_min(0)
    return replace(
        filling,
        index=found.index[0, 0].where(queries, filling.index),
        distance=distance.where(queries, filling.distance),
    )


def vote(filling: Filling, into: Tensor) -> Filling:
    """Mean of what the patches around each pixel propose for it; better and shallower ones count more.

    Args:
        filling: with matches.
        into: bool ``[h, w]``, the pixels to fill.
    """
    matches = psal.Matches(filling.index[None, None], _logits(filling)[None, None])
    values = psal.aggregate(matches, filling.keys[None, :-1], patch_size=PATCH)[0]
    return replace(filling, channels=values.where(into, filling.channels))


def peel(filling: Filling, seed: int) -> Filling:
    """Fill what no patch votes for yet, ring by ring from the border inwards; only what is known or filled counts."""
    empty = filling.hole & ~touches_hole(filling.index >= 0)  # out of reach of every matched patch
    if not empty.any():
        return filling
    in_picture = torch.zeros_like(filling.open)
    in_picture[filling.atlas.y[empty], filling.atlas.x[empty]] = True
    depth, around = (filling.atlas.cut(x) for x in (depth_of(in_picture), touches_hole(in_picture)))
    for ring in range(1, int(depth.max()) + 1):
        weight = (depth < ring).float()
        queries = filling.queries & around & (depth <= ring)
        fresh = queries & (filling.index < 0)
        sampled = torch.full_like(filling.index, -1)
        sampled[fresh] = _closest_of_a_sample(filling, weight, fresh, add_to_seed(seed, ring))
        candidates = torch.stack([filling.index, sampled])
        filling = search(filling, add_to_seed(seed, ring), weight, queries, candidates)
        filling = vote(filling, empty & (depth <= ring))
    return filling


def improve(filling: Filling, seed: int) -> tuple[Filling, float]:
    """One alternation of search and vote; also returns the mean change of a pixel in the hole."""
    weight = (MATCH_DECAY**-filling.depth).clamp_min(MATCH_FLOOR)
    voted = vote(search(filling, seed, weight, filling.queries, _draws(filling, seed)), filling.hole)
    return voted, (voted.channels - filling.channels)[:, filling.hole].abs().mean().item()


def take_over(coarse: Filling, level: Level, seed: int) -> Filling:
    """Start a level with the shifts of the coarser one, twice as long, and fill the hole by them.

    What the coarser level had no hole for, as lines are too thin for it, is filled as at the coarsest one.
    """
    coarse_width = coarse.keys.shape[2]
    used = coarse.queries & (coarse.index >= 0)
    corner, end = _window(coarse, used, level)
    filling = start_level(level, corner, end)
    if filling.open.sum() < ENOUGH_KEYS:  # those of the coarser level had holes in them
        corner = 0, 0
        filling = start_level(level)

    place = torch.full(coarse.open.shape, -1)  # of each pixel of the coarse picture in its atlas
    place[coarse.atlas.y[used], coarse.atlas.x[used]] = torch.nonzero(used.flatten())[:, 0]
    y, x = filling.atlas.y[filling.queries] + corner[0], filling.atlas.x[filling.queries] + corner[1]
    parent_y = (y // 2 - coarse.corner[0]).clamp(0, place.shape[0] - 1)
    parent_x = (x // 2 - coarse.corner[1]).clamp(0, place.shape[1] - 1)
    at = place[parent_y, parent_x]
    match = coarse.index.flatten()[at]
    to_y = 2 * (match // coarse_width + coarse.corner[0]) + y % 2 - corner[0]
    to_x = 2 * (match % coarse_width + coarse.corner[1]) + x % 2 - corner[1]
    filling.index[filling.queries] = _key_at(filling, to_y, to_x, at >= 0)
    filling.distance[filling.queries] = coarse.distance.flatten()[at]
    return peel(vote(filling, filling.hole), seed)


def best_sources(filling: Filling) -> tuple[Tensor, Tensor]:
    """Where the best patch takes each pixel of the hole from, y and x from the corner on, both ``[N]``."""
    height, width = filling.hole.shape
    key_width = filling.keys.shape[2]
    logit = _logits(filling).flatten()
    at = torch.nonzero(filling.hole.flatten())[:, 0]  # a window's margin has no matches: nothing wraps around
    best = torch.full(at.shape, -math.inf)
    source = torch.full(at.shape, -1)
    for dy in range(-REACH, REACH + 1):
        for dx in range(-REACH, REACH + 1):
            voter = (at + dy * width + dx).clamp(0, height * width - 1)
            score = logit[voter]
            better = score > best
            best = score.where(better, best)
            source = (filling.index.flatten()[voter] - dy * key_width - dx).where(better, source)
    return source // key_width, source % key_width


def _window(coarse: Filling, used: Tensor, level: Level) -> tuple[tuple[int, int], tuple[int, int]]:
    """First pixel, and the one after the last, of what a level has to look at: all of its hole, and the matches."""
    match, coarse_width = coarse.index[used], coarse.keys.shape[2]
    sources = match // coarse_width, match % coarse_width
    corner, end = [], []
    for axis, hole in enumerate(box_of(~level.known)):
        here = (coarse.atlas.y, coarse.atlas.x)[axis][used]
        place = 2 * (torch.cat([here, sources[axis]]) + coarse.corner[axis])
        corner.append(max(0, min(int(place.min()), hole.start) - ROOM))
        end.append(min(level.known.shape[axis], max(int(place.max()), hole.stop) + ROOM))
    return (corner[0], corner[1]), (end[0], end[1])


def _logits(filling: Filling) -> Tensor:
    """Logarithm of each patch's weight in the vote, ``[h, w]``; −∞ where there is no match."""
    voters = filling.index >= 0
    spread = VOTE_SPREAD * filling.distance[voters].mean().clamp_min(1e-8)
    logit = -filling.distance / (2 * spread) - filling.depth * math.log(VOTE_DECAY)
    return logit.where(voters, -math.inf)


def _draws(filling: Filling, seed: int) -> Tensor:
    """Each query's match, and random ones around it, ``[m, h, w]``."""
    generator = torch.Generator().manual_seed(seed)
    width = filling.keys.shape[2]
    match = filling.index[filling.queries]
    candidates = filling.index.repeat(1 + len(WINDOWS), 1, 1)
    for number, radius in enumerate(WINDOWS, 1):
        step = torch.randint(-radius, radius + 1, (2, len(match)), generator=generator)
        drawn = _key_at(filling, match // width + step[0], match % width + step[1], match >= 0)
        candidates[number][filling.queries] = drawn
    return candidates


def _key_at(filling: Filling, y: Tensor, x: Tensor, wanted: Tensor) -> Tensor:
    """Flat positions in the picture; −1 where there is no key, or none is wanted."""
    height, width = filling.open.shape
    valid = wanted & (y >= 0) & (y < height) & (x >= 0) & (x < width)
    at = (y * width + x).where(valid, 0)
    return at.where(valid & filling.open.flatten()[at], -1)


def _closest_of_a_sample(filling: Filling, weight: Tensor, queries: Tensor, seed: int) -> Tensor:
    """The best of some random keys for each of the queries, ``[N]``."""
    generator = torch.Generator().manual_seed(seed)
    keys = torch.nonzero(filling.open.flatten())[:, 0]
    count = int(queries.sum())
    most = min(len(keys), max(64, min(SAMPLED_KEYS, 2**23 // max(count, 1))))
    keys = keys[torch.randperm(len(keys), generator=generator)[:most]]
    patches = _patches(filling.keys[:-1], keys)  # [most, d]
    products = torch.cat([2 * patches, -patches.square()], 1).T.contiguous()
    weight = weight * filling.atlas.real
    found = []
    for part in torch.split(torch.nonzero(queries.flatten())[:, 0], 2**13):
        w = _patches(weight[None], part).repeat(1, len(filling.channels))  # [n, d]
        q = _patches(filling.channels, part)
        found.append(keys[(torch.cat([w * q, w], 1) @ products).argmax(1)])
    return torch.cat(found) if found else keys[:0]


def _patches(x: Tensor, centres: Tensor) -> Tensor:
    """Patches of ``[C, H, W]`` around flat positions, ``[n, C · p²]``."""
    padded = F.pad(x[None], (REACH,) * 4, mode="replicate")[0]
    patches = padded.unfold(1, PATCH, 1).unfold(2, PATCH, 1)  # [C, H, W, p, p], a view
    return patches[:, centres // x.shape[2], centres % x.shape[2]].movedim(0, 1).flatten(1)


def _patch_sum(x: Tensor) -> Tensor:
    """Sum over each pixel's patch, ``[h, w]``."""
    return PATCH**2 * torch.from_numpy(ndimage.uniform_filter(x.numpy(), PATCH, mode="nearest"))
