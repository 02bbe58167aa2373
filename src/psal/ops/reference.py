"""The definition of every op of psal, in plain torch, on any device.

The native kernels agree with this file or are wrong. It also runs wherever there is no kernel.

Shapes: B batch, C channels of query and key, Cv channels of the value, k matches per query, m candidates per query,
N query pixels on the grid *Sq, M key pixels on the grid *Sk, D spatial dimensions, d elements of a patch: C times
its pixels.
"""

import math
from collections.abc import Callable, Sequence
from itertools import product
from typing import NamedTuple

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from psal.checks import check_scores
from psal.matches import Matches, best_first
from psal.ops import grid
from psal.ops.grid import NORM_EPSILON
from psal.ops.morton import morton_seeds
from psal.ops.random import random_integers
from psal.options import SearchOptions, Start
from psal.seeds import draw_seed

JUMPS = (1, 2, 4, 8)  # distances of jump flooding, in pixels
SEEDED_DRAWS = 3  # random draws per flood after init="tree": results/seeding.json


def search(
    query: Tensor, key: Tensor, key_mask: Tensor | None, query_mask: Tensor | None, options: SearchOptions
) -> Matches:
    """Find each query's k best keys by PatchMatch as in the paper.

    Each query starts with k random keys. Each iteration has two steps. Jump flooding takes the best match of the pixels
    1, 2, 4 and 8 away along each axis and shifts it back by that distance. Random search draws one key from each of a
    series of windows around the best match, each half the size of the one before.

    With ``init="tree"``, :func:`psal.ops.morton.morton_seeds` gives candidates, and fewer and smaller windows follow.

    Raises:
        ValueError: if ``options.init`` is "tree" and the similarity a function, which it cannot seed.
    """
    if options.init == "tree" and callable(options.similarity):
        raise ValueError("init='tree' needs similarity 'l2', 'dot' or 'cosine', got a function: use init='random'")
    with torch.no_grad():
        index = _search(query, key, key_mask, query_mask, options)  # [B, k, *Sq]
    return best_first(Matches(index, score(query, key, index, options)))


def _search(
    query: Tensor, key: Tensor, key_mask: Tensor | None, query_mask: Tensor | None, options: SearchOptions
) -> Tensor:
    """Return the index ``(B, k, *Sq)``: best first, all different, −1 where ``query_mask`` is False."""
    start, neighbors = options.start(default_init="random"), options.neighbors
    seed = draw_seed(options.seed).to(query.device)  # []
    batch, sq, sk = query.shape[0], query.shape[2:], key.shape[2:]
    schedule = schedule_of(start, sk)
    valid = torch.ones(batch, math.prod(sk), dtype=torch.bool, device=key.device)  # [B, M]
    if key_mask is not None:
        valid = key_mask.flatten(1)  # [B, M]
    active = torch.ones(batch, math.prod(sq), dtype=torch.bool, device=query.device)  # [B, N]
    if query_mask is not None:
        active = query_mask.flatten(1)  # [B, N]
    counter = torch.arange(active.numel(), device=active.device).reshape(active.shape)  # [B, N]
    coordinates = grid.coordinates_of(sq, query.device)  # D × [N]

    def score_of(candidate: Tensor) -> Tensor:  # [B, m, N] -> [B, m, N]
        found = score(query, key, candidate.reshape(*candidate.shape[:2], *sq), options)  # [B, m, *Sq]
        return found.flatten(2).nan_to_num(nan=-math.inf, posinf=math.inf, neginf=-math.inf)  # NaN ranks last

    index = _random_keys(valid, active, counter, seed, neighbors)  # [B, k, N]
    best, order = score_of(index).sort(dim=1, descending=True, stable=True)  # [B, k, N] each
    index = index.gather(1, order)  # [B, k, N]

    def push(candidate: Tensor, allowed: Tensor) -> None:  # [B, N] each
        """Insert the candidate where it is allowed, new and better than the worst match."""
        nonlocal index, best
        allowed = allowed & ~(index == candidate[:, None]).any(1)  # [B, N]
        found = score_of(candidate.where(allowed, -1)[:, None])  # [B, 1, N], −∞ where not allowed
        best, order = torch.cat([best, found], 1).sort(dim=1, descending=True, stable=True)  # [B, k + 1, N] each
        best, order = best[:, :neighbors], order[:, :neighbors]  # [B, k, N] each
        index = torch.cat([index, candidate[:, None]], 1).gather(1, order)  # [B, k, N]

    candidates = start.index
    if start.init == "tree":
        candidates = morton_seeds(query, key, key_mask, seed, options)
    if candidates is not None:
        for candidate in candidates.flatten(2).unbind(1):  # [B, N]
            in_range = (candidate >= 0) & (candidate < valid.shape[1])  # [B, N]
            push(candidate, active & in_range & _at(valid, candidate))

    for iteration in range(schedule.floods):
        for jump in JUMPS:
            leader = index[:, 0]  # [B, N], double-buffered: a jump reads the matches from before it
            for axis, sign in product(range(len(sq)), (-1, 1)):
                source = list(coordinates)  # D × [N]
                source[axis] = coordinates[axis] + sign * jump  # [N]
                exists = grid.inside(source, sq)  # [N]
                match = leader[:, grid.flatten(grid.clamp(source, sq), sq)]  # [B, N]
                target = grid.unflatten(match.clamp_min(0), sk)  # D × [B, N]
                target[axis] = target[axis] - sign * jump  # [B, N]
                allowed = active & exists & (match >= 0) & grid.inside(target, sk)  # [B, N]
                candidate = grid.flatten(grid.clamp(target, sk), sk)  # [B, N]
                push(candidate, allowed & _at(valid, candidate))
        for draw, radius in enumerate(schedule.radii):
            target = []
            for axis, center in enumerate(grid.unflatten(index[:, 0].clamp_min(0), sk)):  # [B, N]
                low = (center - radius).clamp_min(0)  # [B, N]
                high = (center + radius).clamp_max(sk[axis] - 1)  # [B, N]
                stream = draw_stream(neighbors, iteration, draw, axis, sk)
                target.append(low + random_integers(seed, stream, counter, high - low + 1))  # [B, N]
            candidate = grid.flatten(target, sk)  # [B, N]
            push(candidate, active & _at(valid, candidate))
    return index.reshape(batch, neighbors, *sq)  # [B, k, *Sq]


def _random_keys(valid: Tensor, active: Tensor, counter: Tensor, seed: Tensor, neighbors: int) -> Tensor:
    """Draw k different valid keys per query, ``(B, k, N)``: one from each of k strata, all rotated by one amount."""
    count = valid.sum(1, keepdim=True)  # [B, 1]
    keys = valid.to(torch.int8).argsort(dim=1, descending=True, stable=True)  # [B, M], valid ones first
    rotation = random_integers(seed, 0, counter, count)  # [B, N]
    chosen = []
    for neighbor in range(neighbors):
        low, high = count * neighbor // neighbors, count * (neighbor + 1) // neighbors  # [B, 1] each
        position = low + random_integers(seed, neighbor + 1, counter, high - low) + rotation  # [B, N]
        chosen.append(keys.gather(1, position % count))  # [B, N]
    return torch.stack(chosen, 1).masked_fill(~active[:, None], -1)  # [B, k, N]


class Schedule(NamedTuple):
    """What follows the start of a search.

    Attributes:
        floods: how often the jumps are made, with random draws after the last.
        radii: half-widths of the windows of those draws, each half of the one before.
    """

    floods: int
    radii: list[int]


def schedule_of(start: Start, sk: Sequence[int]) -> Schedule:
    """Return the schedule of a start on a key of this size: good candidates need one more flood, but few draws."""
    radii = search_radii(sk)
    if start.init == "tree":
        return Schedule(1 + start.iterations, radii[-SEEDED_DRAWS:])
    return Schedule(start.iterations, radii)


def search_radii(sk: Sequence[int]) -> list[int]:
    """Return the half-widths of random search's windows: from the whole key down to one pixel, halving."""
    return [max(sk) >> step for step in range(max(sk).bit_length())]


def draw_stream(neighbors: int, iteration: int, draw: int, axis: int, sk: Sequence[int]) -> int:
    """Return the random stream of one draw of random search; streams 0 to k belong to the random keys."""
    return neighbors + 1 + (iteration * len(search_radii(sk)) + draw) * len(sk) + axis


def score(query: Tensor, key: Tensor, index: Tensor, options: SearchOptions) -> Tensor:
    """Score each query's patch against the key patches at ``index``, ``(B, m, *Sq)`` both; −∞ where it is −1."""
    sides, similarity = options.sides(query.ndim - 2), options.similarity
    sq, sk = query.shape[2:], key.shape[2:]
    queries, keys = (grid.pad(x, sides, options.padding_mode) for x in (query, key))  # [B, C, *(S + patch − 1)] each
    target = grid.unflatten(index.flatten(2).clamp_min(0), sk)  # D × [B, m, N]
    absent = index.flatten(2)[:, None] < 0  # [B, 1, m, N]; a NaN there must not reach any gradient

    def pair(offset: Sequence[int]) -> tuple[Tensor, Tensor]:
        """Return the pixel at one offset of every query patch, and of every candidate's patch; 0 where it is −1."""
        window = tuple(slice(o, o + s) for o, s in zip(offset, sq, strict=True))
        q = queries[:, :, *window].flatten(2)[:, :, None].masked_fill(absent, 0)  # [B, C, m, N]
        padded_index = grid.flatten([t + o for t, o in zip(target, offset, strict=True)], keys.shape[2:])  # [B, m, N]
        return q, grid.gather(keys.flatten(2), padded_index).masked_fill(absent, 0)  # [B, C, m, N]

    def distance(*offset: int) -> Tensor:
        q, k = pair(offset)  # [B, C, m, N] each
        return -(q - k).square().sum(1)  # [B, m, N]

    def products(*offset: int) -> Tensor:
        q, k = pair(offset)  # [B, C, m, N] each
        return torch.stack([(q * k).sum(1), (q * q).sum(1), (k * k).sum(1)])  # [3, B, m, N]

    offsets = list(product(*(range(side) for side in sides)))
    if similarity == "l2":
        found = _sum_over(distance, offsets)  # [B, m, N]
    elif similarity == "dot":
        found = _sum_over(products, offsets)[0]  # [B, m, N]
    elif similarity == "cosine":
        dot, qq, kk = _sum_over(products, offsets)  # [B, m, N] each
        found = dot * qq.clamp_min(NORM_EPSILON**2).rsqrt() * kk.clamp_min(NORM_EPSILON**2).rsqrt()  # [B, m, N]
    else:
        assert callable(similarity)
        patches = [pair(offset) for offset in offsets]
        q = torch.cat([q for q, _ in patches], 1).movedim(1, -1)  # [B, m, N, d]
        k = torch.cat([k for _, k in patches], 1).movedim(1, -1)  # [B, m, N, d]
        found = check_scores(similarity(q, k), k)  # [B, m, N]
    return found.masked_fill(absent[:, 0], -math.inf).reshape(index.shape)  # [B, m, *Sq]


def attend(matches: Matches, value: Tensor, temperature: float) -> Tensor:
    """Average the values at each query's k matches, weighted by a softmax of score / temperature."""
    return aggregate(matches, value, (1,) * (value.ndim - 2), temperature)


def aggregate(matches: Matches, value: Tensor, sides: Sequence[int], temperature: float) -> Tensor:
    """Average the values at the matches of all pixels in a window around i, each shifted back by its offset from i.

    These are the values at ψ(i + δ) − δ for every offset δ of the window and every one of the k matches ψ of i + δ,
    weighted by one softmax of score / temperature over all of them. Positions outside the key's grid drop out, and so
    do matches of −1; where none is left, the result is 0.
    """
    index, score = matches.index.flatten(2), matches.score  # [B, k, N], [B, k, *Sq]
    sq, sk = matches.index.shape[2:], value.shape[2:]
    coordinates = grid.coordinates_of(sq, index.device)  # D × [N]
    inverse = inverse_temperature(temperature, score.dtype)

    def neighbor(*offset: int) -> tuple[Tensor, Tensor, Tensor]:
        """Return the flat index ψ(i + δ) − δ for all i, its score, and whether there is such a key."""
        source = [c + o for c, o in zip(coordinates, offset, strict=True)]  # D × [N], i + δ
        at_source = grid.flatten(grid.clamp(source, sq), sq)  # [N]
        match = index[:, :, at_source]  # [B, k, N], ψ(i + δ)
        target = [t - o for t, o in zip(grid.unflatten(match.clamp_min(0), sk), offset, strict=True)]  # D × [B, k, N]
        exists = grid.inside(source, sq) & (match >= 0) & grid.inside(target, sk)  # [B, k, N]
        return grid.flatten(grid.clamp(target, sk), sk), score.flatten(2)[:, :, at_source], exists  # [B, k, N] each

    offsets = list(product(*(range(-(side // 2), side // 2 + 1) for side in sides)))
    with torch.no_grad():  # the largest score, subtracted from all so that no exponential overflows
        top = torch.full((index.shape[0], 1, math.prod(sq)), -math.inf, dtype=score.dtype, device=score.device)
        any_exists = torch.zeros_like(top, dtype=torch.bool)  # [B, 1, N]
        for offset in offsets:
            _, found, exists = neighbor(*offset)  # [B, k, N] each
            top = torch.maximum(top, found.masked_fill(~exists, -math.inf).amax(1, keepdim=True))  # [B, 1, N]
            any_exists = any_exists | exists.any(1, keepdim=True)  # [B, 1, N]
        top = top.masked_fill(~any_exists, 0)  # [B, 1, N]

    def term(*offset: int) -> Tensor:
        target, found, exists = neighbor(*offset)  # [B, k, N] each
        found = found.masked_fill(~exists, 0)  # [B, k, N]
        weight = ((found - top) * inverse).exp().masked_fill(~exists, 0)[:, None]  # [B, 1, k, N]
        values = grid.gather(value.flatten(2), target).masked_fill(~exists[:, None], 0)  # [B, Cv, k, N]
        return torch.cat([(weight * values).sum(2), weight.sum(2)], 1)  # [B, Cv + 1, N]

    total = _sum_over(term, offsets)  # [B, Cv + 1, N]
    mass = total[:, -1:]  # [B, 1, N], the softmax's denominator
    return (total[:, :-1] / mass.where(any_exists, 1)).reshape(*value.shape[:2], *sq)  # [B, Cv, *Sq]


def inverse_temperature(temperature: float, dtype: torch.dtype) -> float:
    """Return 1 / temperature within the normal numbers of a type: it multiplies differences, and 0 · ∞ would be NaN."""
    limits = torch.finfo(dtype)
    return min(max(1 / temperature, limits.tiny), limits.max)


def _sum_over(term: Callable[..., Tensor], offsets: list[tuple[int, ...]]) -> Tensor:
    """Sum ``term(*offset)`` over the patch. Backward recomputes each term, so memory does not grow with the patch."""
    recompute = torch.is_grad_enabled()
    total: Tensor | None = None
    for offset in offsets:
        part = checkpoint(term, *offset, use_reentrant=False, preserve_rng_state=False) if recompute else term(*offset)
        total = part if total is None else total + part
    assert total is not None
    return total


def _at(flags: Tensor, index: Tensor) -> Tensor:
    """Read flags ``(B, M)`` at flat indices ``(B, N)``, clamped to the grid: ``(B, N)``."""
    return flags.gather(1, index.clamp(0, flags.shape[1] - 1))
