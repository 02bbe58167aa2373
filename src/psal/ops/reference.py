"""The oracle: every op of psal in plain torch, on any device.

The native kernels agree with this file or are wrong. It is also what runs where there is no kernel.
Shapes: B batch, C channels, k neighbours, N query pixels, M key pixels, *Sq and *Sk their grids.
"""

import math
from collections.abc import Callable, Sequence
from itertools import product

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from psal.ops.random import random_integers

Similarity = str | Callable[[Tensor, Tensor], Tensor]

JUMPS = (1, 2, 4, 8)
NORM_EPSILON = 1e-8  # patches with a smaller norm count as zero for "cosine"


def search(
    query: Tensor,
    key: Tensor,
    key_mask: Tensor | None,
    query_mask: Tensor | None,
    init_index: Tensor | None,
    seed: Tensor,
    patch_size: Sequence[int],
    neighbors: int,
    iterations: int,
    similarity: Similarity,
    padding_mode: str,
) -> Tensor:
    """PatchMatch as in the paper: random start, jump flooding, random search in halving windows.

    Returns:
        index ``(B, k, *Sq)``, best first, all different; −1 where ``query_mask`` is False.
    """
    sq, sk = query.shape[2:], key.shape[2:]

    def score_of(candidate: Tensor) -> Tensor:  # [B, m, N] -> [B, m, N]
        shape = (*candidate.shape[:2], *sq)
        found = score(query, key, candidate.reshape(shape), patch_size, similarity, padding_mode)
        return found.flatten(2).nan_to_num(nan=-math.inf, posinf=math.inf, neginf=-math.inf)

    with torch.no_grad():
        batch = query.shape[0]
        allowed = torch.ones(batch, math.prod(sk), dtype=torch.bool, device=key.device)
        if key_mask is not None:
            allowed = key_mask.flatten(1)
        active = torch.ones(batch, math.prod(sq), dtype=torch.bool, device=query.device)
        if query_mask is not None:
            active = query_mask.flatten(1)
        coordinates = _grid(sq, query.device)  # D tensors of [N]

        index = _random_start(allowed, active, seed, neighbors)  # [B, k, N]
        best, order = score_of(index).sort(dim=1, descending=True, stable=True)
        index = index.gather(1, order)

        def keep_best(candidate: Tensor, valid: Tensor) -> None:  # both [B, N]
            """Insert the candidate where it beats the worst neighbour and is not there yet."""
            nonlocal index, best
            valid = valid & ~(index == candidate[:, None]).any(1)
            found = score_of(candidate.where(valid, -1)[:, None])  # [B, 1, N]
            best, order = torch.cat([best, found], 1).sort(dim=1, descending=True, stable=True)
            best, order = best[:, :neighbors], order[:, :neighbors]
            index = torch.cat([index, candidate[:, None]], 1).gather(1, order)

        if init_index is not None:
            for candidate in init_index.flatten(2).unbind(1):
                inside = active & (candidate >= 0) & (candidate < allowed.shape[1])
                keep_best(candidate, inside & _lookup(allowed, candidate))

        for iteration in range(iterations):
            for jump in JUMPS:
                leader = index[:, 0]  # the state before this jump: neighbours are read from here
                for axis, sign in product(range(len(sq)), (-1, 1)):
                    source = list(coordinates)
                    source[axis] = coordinates[axis] + sign * jump
                    exists = (source[axis] >= 0) & (source[axis] < sq[axis])  # [N]
                    source[axis] = source[axis].clamp(0, sq[axis] - 1)
                    match = leader[:, _flatten(source, sq)]  # [B, N]
                    target = _unflatten(match.clamp_min(0), sk)
                    target[axis] = target[axis] - sign * jump
                    inside = (target[axis] >= 0) & (target[axis] < sk[axis])
                    target[axis] = target[axis].clamp(0, sk[axis] - 1)
                    candidate = _flatten(target, sk)
                    keep_best(candidate, active & exists & (match >= 0) & inside & _lookup(allowed, candidate))
            for draw, radius in enumerate(search_radii(sk)):
                centre = _unflatten(index[:, 0].clamp_min(0), sk)
                target = []
                for axis, position in enumerate(centre):
                    low = (position - radius).clamp_min(0)
                    high = (position + radius).clamp_max(sk[axis] - 1)
                    stream = draw_stream(neighbors, iteration, draw, axis, sk)
                    target.append(low + random_integers(seed, stream, _counter(active), high - low + 1))
                candidate = _flatten(target, sk)
                keep_best(candidate, active & _lookup(allowed, candidate))
        return index.reshape(batch, neighbors, *sq)


def search_radii(sk: Sequence[int]) -> list[int]:
    """Half-widths of the random search's windows: the whole map, halving down to one pixel."""
    return [max(sk) >> step for step in range(max(sk).bit_length())]


def draw_stream(neighbors: int, iteration: int, draw: int, axis: int, sk: Sequence[int]) -> int:
    """Number of the random stream of one draw; the first ``k + 1`` streams belong to the start."""
    return neighbors + 1 + (iteration * len(search_radii(sk)) + draw) * len(sk) + axis


def score(
    query: Tensor,
    key: Tensor,
    index: Tensor,
    patch_size: Sequence[int],
    similarity: Similarity,
    padding_mode: str,
) -> Tensor:
    """Score of each query's patch with the patches at ``index``; −∞ where the index is −1.

    Returns:
        ``(B, m, *Sq)`` for an index of that shape.
    """
    sq, sk = query.shape[2:], key.shape[2:]
    queries, keys = (pad(x, patch_size, padding_mode) for x in (query, key))
    padded = keys.shape[2:]
    target = _unflatten(index.flatten(2).clamp_min(0), sk)  # D tensors of [B, m, N]

    def pair(offset: Sequence[int]) -> tuple[Tensor, Tensor]:
        """The pixel at one offset of each query's patch, and of each of its matches' patches."""
        window = tuple(slice(o, o + s) for o, s in zip(offset, sq, strict=True))
        q = queries[:, :, *window].flatten(2)[:, :, None]  # [B, C, 1, N]
        at = _flatten([t + o for t, o in zip(target, offset, strict=True)], padded)
        return q, _gather(keys.flatten(2), at)  # [B, C, m, N]

    def distance(*offset: int) -> Tensor:
        q, k = pair(offset)
        return -(q - k).square().sum(1)

    def products(*offset: int) -> Tensor:
        q, k = pair(offset)
        return torch.stack([(q * k).sum(1), (q * q).sum(1).expand_as(k[:, 0]), (k * k).sum(1)])

    offsets = list(product(*(range(p) for p in patch_size)))
    if similarity == "l2":
        found = _sum_over(distance, offsets)
    elif similarity == "dot":
        found = _sum_over(products, offsets)[0]
    elif similarity == "cosine":
        dot, qq, kk = _sum_over(products, offsets)
        found = dot * qq.clamp_min(NORM_EPSILON**2).rsqrt() * kk.clamp_min(NORM_EPSILON**2).rsqrt()
    else:
        assert callable(similarity)
        patches = [pair(offset) for offset in offsets]
        q = torch.cat([q for q, _ in patches], 1).movedim(1, -1)  # [B, 1, N, d]
        k = torch.cat([k for _, k in patches], 1).movedim(1, -1)  # [B, m, N, d]
        found = similarity(q.expand_as(k), k)
    return found.masked_fill(index.flatten(2) < 0, -math.inf).reshape(index.shape)


def attend(index: Tensor, score: Tensor, value: Tensor, temperature: float) -> Tensor:
    """Softmax over the k neighbours, times their values."""
    absent = index.flatten(2) < 0  # [B, k, N]
    weight = (score.flatten(2).masked_fill(absent, 0) / temperature).softmax(1).masked_fill(absent, 0)
    values = _gather(value.flatten(2), index.flatten(2).clamp_min(0)).masked_fill(absent[:, None], 0)  # [B, Cv, k, N]
    return (weight[:, None] * values).sum(2).reshape(*value.shape[:2], *index.shape[2:])


def aggregate(index: Tensor, score: Tensor, value: Tensor, patch_size: Sequence[int], temperature: float) -> Tensor:
    """Softmax over the k neighbours of every pixel in the patch window, shifted back."""
    sq, sk = index.shape[2:], value.shape[2:]
    grid = _grid(sq, index.device)

    def neighbor(*offset: int) -> tuple[Tensor, Tensor]:
        """Flat position ψ(i + δ) − δ, and the logit of it, −∞ where there is none."""
        source = [g + o for g, o in zip(grid, offset, strict=True)]
        exists = _inside(source, sq)  # [N]
        at = _flatten([s.clamp(0, size - 1) for s, size in zip(source, sq, strict=True)], sq)
        match = index.flatten(2)[:, :, at]  # [B, k, N]
        target = [t - o for t, o in zip(_unflatten(match.clamp_min(0), sk), offset, strict=True)]
        exists = exists & (match >= 0) & _inside(target, sk)
        logit = (score.flatten(2)[:, :, at] / temperature).masked_fill(~exists, -math.inf)
        return _flatten([t.clamp(0, size - 1) for t, size in zip(target, sk, strict=True)], sk), logit

    offsets = list(product(*(range(-(p // 2), p // 2 + 1) for p in patch_size)))
    with torch.no_grad():
        top = torch.full((index.shape[0], 1, math.prod(sq)), -math.inf, dtype=score.dtype, device=score.device)
        for offset in offsets:
            top = torch.maximum(top, neighbor(*offset)[1].amax(1, keepdim=True))
        top = top.masked_fill(top == -math.inf, 0)

    def term(*offset: int) -> Tensor:
        at, logit = neighbor(*offset)
        weight = (logit - top).exp()[:, None]  # [B, 1, k, N]
        values = _gather(value.flatten(2), at).masked_fill((logit == -math.inf)[:, None], 0)  # 0 · NaN is NaN
        weighted = (weight * values).sum(2)
        return torch.cat([weighted, weight.sum(2)], 1)  # [B, Cv + 1, N]

    total = _sum_over(term, offsets)
    mass = total[:, -1:]
    out = total[:, :-1] / mass.where(mass > 0, 1)
    return out.reshape(*value.shape[:2], *sq)


def pad(x: Tensor, patch_size: Sequence[int], padding_mode: str) -> Tensor:
    """Continue a map by half a patch on every side."""
    for axis, side in enumerate(patch_size, start=2):
        at = padding_source(x.shape[axis], side // 2, padding_mode, x.device)
        x = x.index_select(axis, at.clamp_min(0))
        x = x.masked_fill((at < 0).reshape(-1, *[1] * (x.ndim - 1 - axis)), 0)
    return x


def padding_source(size: int, border: int, padding_mode: str, device: torch.device) -> Tensor:
    """Which pixel each position of a padded axis continues; −1 for a zero."""
    at = torch.arange(-border, size + border, device=device)
    if padding_mode == "replicate":
        return at.clamp(0, size - 1)
    if padding_mode == "reflect":
        period = max(2 * (size - 1), 1)
        at = at.remainder(period)
        return torch.minimum(at, period - at).clamp_max(size - 1)
    return at.masked_fill((at < 0) | (at >= size), -1)


def _random_start(allowed: Tensor, active: Tensor, seed: Tensor, neighbors: int) -> Tensor:
    """k different allowed keys a query: one of each of k strata of the allowed ones, rotated at random."""
    counter = _counter(active)  # [B, N]
    count = allowed.sum(1, keepdim=True)  # [B, 1]
    position = allowed.to(torch.int8).argsort(dim=1, descending=True, stable=True)  # allowed first
    rotation = random_integers(seed, 0, counter, count)
    chosen = []
    for neighbor in range(neighbors):
        low, high = count * neighbor // neighbors, count * (neighbor + 1) // neighbors
        at = low + random_integers(seed, neighbor + 1, counter, high - low) + rotation
        chosen.append(position.gather(1, at % count))
    return torch.stack(chosen, 1).masked_fill(~active[:, None], -1)


def _counter(active: Tensor) -> Tensor:
    """A number for every query of the batch, which the random numbers count on."""
    return torch.arange(active.numel(), device=active.device).reshape(active.shape)


def _sum_over(term: Callable[..., Tensor], offsets: list[tuple[int, ...]]) -> Tensor:
    """Sum of ``term`` over the patch; each term is computed again in backward rather than kept."""
    recompute = torch.is_grad_enabled()
    total: Tensor | None = None
    for offset in offsets:
        part = checkpoint(term, *offset, use_reentrant=False, preserve_rng_state=False) if recompute else term(*offset)
        total = part if total is None else total + part
    assert total is not None
    return total


def _gather(x: Tensor, at: Tensor) -> Tensor:
    """``(B, C, M)`` at positions ``(B, m, N)`` -> ``(B, C, m, N)``."""
    flat = at.flatten(1)[:, None].expand(-1, x.shape[1], -1)
    return x.gather(2, flat).reshape(*x.shape[:2], *at.shape[1:])


def _lookup(flags: Tensor, at: Tensor) -> Tensor:
    """``(B, M)`` at positions ``(B, N)``, which may lie outside."""
    return flags.gather(1, at.clamp(0, flags.shape[1] - 1))


def _grid(shape: Sequence[int], device: torch.device) -> list[Tensor]:
    return _unflatten(torch.arange(math.prod(shape), device=device), shape)


def _unflatten(flat: Tensor, shape: Sequence[int]) -> list[Tensor]:
    coordinates = []
    for size in reversed(shape):
        coordinates.append(flat % size)
        flat = flat // size
    return coordinates[::-1]


def _flatten(coordinates: Sequence[Tensor], shape: Sequence[int]) -> Tensor:
    flat = torch.zeros_like(coordinates[0])
    for coordinate, size in zip(coordinates, shape, strict=True):
        flat = flat * size + coordinate
    return flat


def _inside(coordinates: Sequence[Tensor], shape: Sequence[int]) -> Tensor:
    inside = torch.ones_like(coordinates[0], dtype=torch.bool)
    for coordinate, size in zip(coordinates, shape, strict=True):
        inside = inside & (coordinate >= 0) & (coordinate < size)
    return inside
