"""Matches grouped by the pixel at one end, so that each pixel's gradient is a sum in a fixed order, without atomics."""

import math
from dataclasses import dataclass
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from psal.ops.triton.layout import OPTIONS, PatchMaps, three, tiles_over
from psal.ops.triton.tiles import inside, offset_of, tile_count, tile_of, unflatten


@dataclass(frozen=True)
class Links:
    """Matches in CSR form: those of pixel p are ``start[p]`` to ``start[p + 1] − 1``.

    Attributes:
        start: int32 ``(B, pixels + 1)``.
        far_end: int32 ``(B, k · N)``, flat index of the pixel at the other end; −1 for a missing match.
        weights: tensors ``(B, k · N)``.
    """

    start: Tensor
    far_end: Tensor
    weights: tuple[Tensor, ...]


def by_query(index: Tensor, weights: tuple[Tensor, ...]) -> Links:
    """Group matches ``(B, k, N)`` by query."""
    batch, neighbors, queries = index.shape
    start = torch.arange(0, neighbors * queries + 1, neighbors, dtype=torch.int32, device=index.device)
    far_end = index.mT.flatten(1).to(torch.int32).contiguous()
    return Links(
        start.expand(batch, -1).contiguous(), far_end, tuple(weight.mT.flatten(1).contiguous() for weight in weights)
    )


def by_key(index: Tensor, weights: tuple[Tensor, ...], keys: int) -> Links:
    """Group matches ``(B, k, N)`` by key. The sort is stable, so the order depends on the matches alone."""
    batch, _, queries = index.shape
    key = index.flatten(1)
    key = key.where((key >= 0) & (key < keys), keys).to(torch.int32)
    key, order = key.sort(dim=1, stable=True)  # missing matches last, behind every segment
    edges = torch.arange(keys + 1, dtype=torch.int32, device=index.device).expand(batch, -1).contiguous()
    start = torch.searchsorted(key, edges, out_int32=True)
    far_end = (order % queries).to(torch.int32)
    return Links(start, far_end, tuple(weight.flatten(1).gather(1, order) for weight in weights))


@triton.jit
def sum_links(
    near, far, start, far_end, weight, near_weight, out, links, nd, nh, nw, fd, fh, fw,
    DIMS: tl.constexpr, TZ: tl.constexpr, TY: tl.constexpr, TX: tl.constexpr,
    PZ: tl.constexpr, PY: tl.constexpr, PX: tl.constexpr, C: tl.constexpr, CB: tl.constexpr,
    L2: tl.constexpr, COSINE: tl.constexpr, WIDE: tl.constexpr, TYPE: tl.constexpr,
):  # fmt: skip
    """Sum over all patches that contain a padded pixel, and over their links: one block of channels per program.

    A link adds weight · (far − near) for L2, else weight · far, and near_weight · near for COSINE. ``near`` is the
    padded map that the gradient belongs to, ``far`` the other one.
    """
    pd, ph, pw = nd + PZ - 1, nh + PY - 1, nw + PX - 1
    tiles = tile_count(pd, ph, pw, TZ, TY, TX)
    tile = tl.program_id(0) % tiles
    block = tl.program_id(0) // tiles % (C // CB)
    batch = (tl.program_id(0) // tiles // (C // CB)).to(tl.int64)
    z, y, x, exists = tile_of(tile, pd, ph, pw, TZ, TY, TX)
    channel = tl.arange(0, CB)[None, :] + block * CB
    at = (z * ph + y) * pw + x
    far_row = fw + PX - 1
    far_slice = far_row * (fh + PY - 1)
    if WIDE:
        at = at.to(tl.int64)
    near_at = batch * (pd * ph * pw) * C + at[:, None] * C + channel
    far += batch * (far_slice * (fd + PZ - 1)) * C
    start += batch * (nd * nh * nw + 1)
    far_end += batch * links
    weight += batch * links
    near_weight += batch * links
    own = tl.load(near + near_at).to(TYPE)
    total = tl.zeros(own.shape, TYPE)
    near_total = tl.zeros(at.shape, TYPE)
    for number in tl.range(PZ * PY * PX):
        dz, dy, dx = offset_of(number, PY, PX)
        center = exists & inside(z - dz, y - dy, x - dx, nd, nh, nw)
        pixel = ((z - dz) * nh + (y - dy)) * nw + (x - dx)
        first = tl.load(start + pixel, mask=center, other=0)
        count = tl.load(start + pixel + 1, mask=center, other=0) - first
        for i in tl.range(tl.max(count, 0)):
            match = tl.load(far_end + first + i, mask=i < count, other=-1)
            present = match >= 0
            fz, fy, fx = unflatten(tl.maximum(match, 0), fh, fw, DIMS)
            far_at = (fz + dz) * far_slice + (fy + dy) * far_row + fx + dx
            if WIDE:
                far_at = far_at.to(tl.int64)
            w = tl.load(weight + first + i, mask=present, other=0)
            value = tl.load(far + far_at[:, None] * C + channel, mask=present[:, None], other=0).to(TYPE)
            if L2:
                value = value - own
            total += tl.where(present[:, None], w[:, None] * value, 0)
            if COSINE:
                near_total += tl.load(near_weight + first + i, mask=present, other=0)
    if COSINE:
        scaled = near_total[:, None] * own
        total += tl.where(near_total[:, None] != 0, scaled, 0)  # the pixel may be NaN and in no matched patch
    tl.store(out + near_at, total, mask=exists[:, None])


def sum_over_patches(maps: PatchMaps, links: Links, *, of_key: bool) -> Tensor:
    """Return the gradient of the padded query, or of the padded key, ``(B, C, *(S + patch − 1))``.

    Args:
        maps: query and key.
        links: grouped by query, or by key; their weights are those of the far and the near pixel.
        of_key: whether it is the key's.
    """
    pair, sizes = [maps.padded_query, maps.padded_key], [maps.sq, maps.sk]
    if of_key:
        pair.reverse()
        sizes.reverse()
    constants: dict[str, Any] = maps.constants
    padded = three(pair[0].shape[1:-1])
    out = torch.empty_like(pair[0], dtype=maps.type)
    programs = maps.batch * tiles_over(padded, constants) * (constants["C"] // constants["CB"])
    sum_links[(programs,)](
        *pair, links.start, links.far_end, *links.weights, out, math.prod(links.far_end.shape[1:]),
        *sizes[0], *sizes[1], **constants, **OPTIONS,
    )  # fmt: skip
    return out[..., : maps.query.shape[1]].movedim(-1, 1)
