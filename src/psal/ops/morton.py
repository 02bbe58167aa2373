"""Candidates for the start of a search: keys that are close to a query on Morton curves through their descriptors.

Keys are sorted along several curves, each through a random rotation of the descriptors. A query looks at the keys next
to it on every curve, and keeps those with the closest descriptors. Plain torch, on any device, without waiting for it.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from psal.ops.descriptors import describe
from psal.ops.random import random_integers
from psal.options import SearchOptions

TABLES = 4  # curves; the first follows the principal components themselves
ROTATED = 8  # components that are rotated
DIMENSIONS, BITS = 5, 6  # of a curve: 30 bits
WINDOW = 32  # keys that a query looks at per curve
MIN_KEPT, SPARE = 5, 2  # candidates per query: at least 5, and 2 more than it has neighbors
EDGE_SAMPLES = 4096  # keys from which the cells of a curve are computed
CHUNK_ELEMENTS = 2**24  # numbers that are compared at once: 64 MB
FIRST_STREAM = 2**31  # of the random numbers; those below belong to the search


Curve = tuple[Tensor, Tensor]
Scan = Callable[[Tensor, Tensor, Tensor | None, list[Curve], int], Tensor]


def morton_seeds(
    query: Tensor,
    key: Tensor,
    key_mask: Tensor | None,
    seed: Tensor,
    options: SearchOptions,
    scan: Scan | None = None,
) -> Tensor:
    """Return candidates int64 ``(B, m, *Sq)`` with m ≥ k, all different, closest first; −1 if there are too few keys.

    Args:
        query, key, key_mask, options: as in :meth:`psal.ops.Backend.search`.
        seed: 0-d int64, on the device of the maps.
        scan: a kernel that does what :func:`closest` does; None for that.
    """
    with torch.autocast(query.device.type, enabled=False):
        queries, keys = describe(query, key, options)  # [B, N, 16], [B, M, 16]
        valid = None if key_mask is None else key_mask.flatten(1)  # [B, M]
        curves = [curve(queries, keys, valid, seed, table) for table in range(TABLES)]
    kept = min(max(MIN_KEPT, options.neighbors + SPARE), keys.shape[1])
    return (scan or closest)(queries, keys, valid, curves, kept).reshape(query.shape[0], kept, *query.shape[2:])


def curve(queries: Tensor, keys: Tensor, valid: Tensor | None, seed: Tensor, table: int) -> Curve:
    """Sort the keys along a curve.

    Returns:
        Keys in the curve's order, ``(B, M)``, with invalid ones last; and the position of every query, ``(B, N)``.
    """
    rotation = rotation_of(seed, table, keys.device)  # [8, 8]
    rotated = [x[..., :ROTATED] @ rotation for x in (queries, keys)]
    axes = rotated[1].var(1).argsort(dim=1, descending=True, stable=True)[:, :DIMENSIONS]  # [B, 5]
    query_axes, key_axes = (x.gather(2, axes[:, None].expand(-1, x.shape[1], -1)).mT.contiguous() for x in rotated)
    edges = cell_edges(key_axes, valid)  # [B, 5, cells − 1]
    query_codes, key_codes = (interleave(torch.searchsorted(edges, x)) for x in (query_axes, key_axes))
    if valid is not None:
        key_codes = key_codes.where(valid, 2 ** (DIMENSIONS * BITS))
    key_codes, order = key_codes.sort(dim=1, stable=True)
    return order, torch.searchsorted(key_codes, query_codes)


def rotation_of(seed: Tensor, table: int, device: torch.device) -> Tensor:
    """Return a random rotation ``(8, 8)``; none for the first table."""
    if table == 0:
        return torch.eye(ROTATED, device=device)
    counter = torch.arange(4 * ROTATED**2, device=device)
    uniform = random_integers(seed, FIRST_STREAM + table, counter, torch.full_like(counter, 2**16)) / 2**16
    normal = uniform.reshape(4, ROTATED, ROTATED).sum(0) - 2  # close enough to a normal distribution
    rotation: Tensor = torch.linalg.qr(normal.float()).Q
    return rotation


def cell_edges(axes: Tensor, valid: Tensor | None) -> Tensor:
    """Return the edges of 2⁶ cells with equally many keys along each axis of ``(B, 5, M)``: ``(B, 5, 2⁶ − 1)``."""
    batch, dimensions, keys = axes.shape
    count = min(keys, EDGE_SAMPLES)
    position = (torch.arange(count, device=axes.device) * keys // count).expand(batch, -1)  # [B, count]
    if valid is not None:
        order = valid.to(torch.int8).argsort(dim=1, descending=True, stable=True)  # [B, M], valid ones first
        total = valid.sum(1, keepdim=True)
        position = order.gather(1, torch.arange(count, device=axes.device) * total // count)
    samples = axes.gather(2, position[:, None].expand(-1, dimensions, -1)).sort(dim=2).values
    cells = 2**BITS
    return samples.index_select(2, torch.arange(1, cells, device=axes.device) * count // cells)


def interleave(cells: Tensor) -> Tensor:
    """Interleave the bits of the cells ``(B, 5, pixels)``, those of the first axis highest: ``(B, pixels)``."""
    code = torch.zeros_like(cells[:, 0])
    for bit in reversed(range(BITS)):
        for axis in range(cells.shape[1]):
            code = code * 2 + (cells[:, axis] >> bit & 1)
    return code.to(torch.int32)  # half the bytes to sort


def closest(queries: Tensor, keys: Tensor, valid: Tensor | None, curves: list[Curve], kept: int) -> Tensor:
    """Return the keys with the closest descriptors near each query's positions on the curves, ``(B, kept, N)``."""
    batch, count, size = queries.shape
    window = min(WINDOW, keys.shape[1])
    total = torch.full((batch, 1), keys.shape[1], device=keys.device) if valid is None else valid.sum(1, keepdim=True)
    rows = max(1, CHUNK_ELEMENTS // (max(batch, 1) * window * size))
    parts = []
    for start in range(0, count, rows):
        described = queries.narrow(1, start, min(rows, count - start))[:, :, None]  # [B, n, 1, 16]
        length = described.shape[1]
        best = torch.full((batch, length, kept), -1, device=keys.device)
        distance = torch.full(best.shape, torch.inf, device=keys.device)
        for order, position in curves:
            first = torch.minimum(position.narrow(1, start, length) - window // 2, total - window).clamp_min(0)
            place = first[..., None] + torch.arange(window, device=keys.device)  # [B, n, window]
            candidate = order.gather(1, place.clamp_max(keys.shape[1] - 1).flatten(1)).reshape(place.shape)
            near = keys.gather(1, candidate.flatten(1)[..., None].expand(-1, -1, size)).reshape(*place.shape, size)
            found = (near - described).square().sum(3)  # [B, n, window]
            new = (place < total[..., None]) & ~(candidate[..., None] == best[..., None, :]).any(3)
            candidate, found = candidate.where(new, -1), found.where(new, torch.inf)
            distance, rank = torch.cat([distance, found], 2).sort(dim=2, stable=True)
            distance, rank = distance[..., :kept], rank[..., :kept]
            best = torch.cat([best, candidate], 2).gather(2, rank)
        parts.append(best)
    return torch.cat(parts, 1).mT
