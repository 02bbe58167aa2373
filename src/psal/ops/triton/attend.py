"""Attention over given matches, and over those of a patch window, and their gradients.

Weights are never stored. The backward pass computes them again from ``log_mass``: the largest score of each query's
softmax and the log of its sum, or +∞ and 0 where no match is left.
"""

import math
from dataclasses import dataclass
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from psal.ops.reference import inverse_temperature
from psal.ops.triton import links
from psal.ops.triton.layout import (
    OPTIONS,
    TYPES,
    accumulator,
    channel_blocks,
    channels_last,
    three,
    tile_constants,
    tiles_over,
)
from psal.ops.triton.tiles import inside, offset_of, tile_count, tile_of, unflatten


@triton.jit
def _link(
    index, score, base, z, y, x, number, exists, qd, qh, qw, kd, kh, kw,
    DIMS: tl.constexpr, PZ: tl.constexpr, PY: tl.constexpr, PX: tl.constexpr,
):  # fmt: skip
    """Return the key that a match of the window's pixel leads to, its score, and whether there is one."""
    dz, dy, dx = offset_of(number, PY, PX)
    dz, dy, dx = dz - PZ // 2, dy - PY // 2, dx - PX // 2
    exists = exists & inside(z + dz, y + dy, x + dx, qd, qh, qw)
    at = base + ((z + dz) * qh + (y + dy)) * qw + (x + dx)
    match = tl.load(index + at, mask=exists, other=-1)
    kz, ky, kx = unflatten(tl.maximum(match, 0).to(tl.int32), kh, kw, DIMS)
    kz, ky, kx = kz - dz, ky - dy, kx - dx
    exists = exists & (match >= 0) & (match < kd * kh * kw) & inside(kz, ky, kx, kd, kh, kw)
    return (kz * kh + ky) * kw + kx, tl.load(score + at, mask=exists, other=-float("inf")), exists


@triton.jit
def average(
    index, score, value, out, log_mass, inverse, neighbors, channels, qd, qh, qw, kd, kh, kw,
    DIMS: tl.constexpr, TZ: tl.constexpr, TY: tl.constexpr, TX: tl.constexpr,
    PZ: tl.constexpr, PY: tl.constexpr, PX: tl.constexpr, C: tl.constexpr, CB: tl.constexpr,
    WIDE: tl.constexpr, TYPE: tl.constexpr,
):  # fmt: skip
    """Average the values of each pixel's links: one block of channels per program; the first also writes log_mass."""
    tiles = tile_count(qd, qh, qw, TZ, TY, TX)
    tile = tl.program_id(0) % tiles
    block = tl.program_id(0) // tiles % (C // CB)
    batch = (tl.program_id(0) // tiles // (C // CB)).to(tl.int64)
    z, y, x, exists = tile_of(tile, qd, qh, qw, TZ, TY, TX)
    queries = qd * qh * qw
    channel = tl.arange(0, CB)[None, :] + block * CB
    value += batch * (kd * kh * kw) * C
    factor = tl.load(inverse)
    highest = tl.full(z.shape, -float("inf"), TYPE)
    found_any = exists & (z < 0)
    for number in tl.range(PZ * PY * PX):
        for i in tl.range(neighbors):
            _, found, there = _link(
                index, score, (batch * neighbors + i) * queries, z, y, x, number, exists,
                qd, qh, qw, kd, kh, kw, DIMS, PZ, PY, PX,
            )  # fmt: skip
            highest = tl.maximum(highest, found)  # NaN is skipped here, and turns up in the sum
            found_any = found_any | there
    origin = tl.where(found_any, highest, 0)
    mass = tl.zeros(z.shape, TYPE)
    total = tl.zeros([TZ * TY * TX, CB], TYPE)
    for number in tl.range(PZ * PY * PX):
        for i in tl.range(neighbors):
            target, found, there = _link(
                index, score, (batch * neighbors + i) * queries, z, y, x, number, exists,
                qd, qh, qw, kd, kh, kw, DIMS, PZ, PY, PX,
            )  # fmt: skip
            weight = tl.where(there, tl.exp((found - origin) * factor), 0)
            if WIDE:
                target = target.to(tl.int64)
            values = tl.load(value + target[:, None] * C + channel, mask=there[:, None], other=0).to(TYPE)
            mass += weight
            total += tl.where(there[:, None], weight[:, None] * values, 0)
    at = (z * qh + y) * qw + x
    mass = tl.where(found_any, mass, 1)
    total = total / mass[:, None]
    kept = exists[:, None] & (channel < channels)
    tl.store(out + (batch * channels + channel) * queries + at[:, None], total, mask=kept)
    if block == 0:
        tl.store(log_mass + batch * 2 * queries + at, tl.where(found_any, highest, float("inf")), mask=exists)
        tl.store(log_mass + (batch * 2 + 1) * queries + at, tl.log(mass), mask=exists)


@triton.jit
def score_gradient(
    index, score, value, out, grad, log_mass, grad_score, inverse, neighbors, qd, qh, qw, kd, kh, kw,
    DIMS: tl.constexpr, TZ: tl.constexpr, TY: tl.constexpr, TX: tl.constexpr,
    PZ: tl.constexpr, PY: tl.constexpr, PX: tl.constexpr, C: tl.constexpr, CB: tl.constexpr,
    WIDE: tl.constexpr, TYPE: tl.constexpr,
):  # fmt: skip
    """Sum weight · ⟨grad, value − out⟩ over the pixels of each query's window, for each of its matches."""
    tiles = tile_count(qd, qh, qw, TZ, TY, TX)
    batch = (tl.program_id(0) // tiles).to(tl.int64)
    z, y, x, exists = tile_of(tl.program_id(0) % tiles, qd, qh, qw, TZ, TY, TX)
    queries = qd * qh * qw
    channel = tl.arange(0, CB)[None, :]
    value += batch * (kd * kh * kw) * C
    out += batch * queries * C
    grad += batch * queries * C
    log_mass += batch * 2 * queries
    factor = tl.load(inverse)
    for i in tl.range(neighbors):
        at = (batch * neighbors + i) * queries + (z * qh + y) * qw + x
        match = tl.load(index + at)
        present = exists & (match >= 0) & (match < kd * kh * kw)
        found = tl.load(score + at, mask=present, other=0)
        kz, ky, kx = unflatten(tl.maximum(match, 0).to(tl.int32), kh, kw, DIMS)
        total = tl.zeros(z.shape, TYPE)
        for number in tl.range(PZ * PY * PX):
            dz, dy, dx = offset_of(number, PY, PX)
            dz, dy, dx = dz - PZ // 2, dy - PY // 2, dx - PX // 2
            there = present & inside(z + dz, y + dy, x + dx, qd, qh, qw)
            there = there & inside(kz + dz, ky + dy, kx + dx, kd, kh, kw)
            pixel = ((z + dz) * qh + (y + dy)) * qw + (x + dx)
            target = ((kz + dz) * kh + (ky + dy)) * kw + (kx + dx)
            largest = tl.load(log_mass + pixel, mask=there, other=0)
            log_sum = tl.load(log_mass + queries + pixel, mask=there, other=0)
            weight = tl.exp((found - largest) * factor - log_sum)
            if WIDE:
                pixel, target = pixel.to(tl.int64), target.to(tl.int64)
            along = tl.zeros([TZ * TY * TX, CB], TYPE)
            for c in tl.range(0, C, CB):
                g = tl.load(grad + pixel[:, None] * C + (channel + c), mask=there[:, None], other=0).to(TYPE)
                o = tl.load(out + pixel[:, None] * C + (channel + c), mask=there[:, None], other=0).to(TYPE)
                v = tl.load(value + target[:, None] * C + (channel + c), mask=there[:, None], other=0).to(TYPE)
                along += g * (v - o)
            total += tl.where(there, weight * tl.sum(along, 1), 0)
        tl.store(grad_score + at, total * factor, mask=exists)


@triton.jit
def value_gradient(
    start, far_end, score, grad, log_mass, grad_value, inverse, links, channels, qd, qh, qw, kd, kh, kw,
    DIMS: tl.constexpr, TZ: tl.constexpr, TY: tl.constexpr, TX: tl.constexpr,
    PZ: tl.constexpr, PY: tl.constexpr, PX: tl.constexpr, C: tl.constexpr, CB: tl.constexpr,
    WIDE: tl.constexpr, TYPE: tl.constexpr,
):  # fmt: skip
    """Sum weight · grad over the pixels that read a key: one block of channels per program.

    The link s → m is read by pixel s + δ at the key m + δ, for every offset δ of the window.
    """
    tiles = tile_count(kd, kh, kw, TZ, TY, TX)
    tile = tl.program_id(0) % tiles
    block = tl.program_id(0) // tiles % (C // CB)
    batch = (tl.program_id(0) // tiles // (C // CB)).to(tl.int64)
    z, y, x, exists = tile_of(tile, kd, kh, kw, TZ, TY, TX)
    queries, keys = qd * qh * qw, kd * kh * kw
    channel = tl.arange(0, CB)[None, :] + block * CB
    start += batch * (keys + 1)
    far_end += batch * links
    score += batch * links
    grad += batch * queries * C
    log_mass += batch * 2 * queries
    factor = tl.load(inverse)
    total = tl.zeros([TZ * TY * TX, CB], TYPE)
    for number in tl.range(PZ * PY * PX):
        dz, dy, dx = offset_of(number, PY, PX)
        dz, dy, dx = dz - PZ // 2, dy - PY // 2, dx - PX // 2
        center = exists & inside(z - dz, y - dy, x - dx, kd, kh, kw)
        key = ((z - dz) * kh + (y - dy)) * kw + (x - dx)
        first = tl.load(start + key, mask=center, other=0)
        count = tl.load(start + key + 1, mask=center, other=0) - first
        for i in tl.range(tl.max(count, 0)):
            there = i < count
            query = tl.load(far_end + first + i, mask=there, other=0)
            found = tl.load(score + first + i, mask=there, other=0)
            qz, qy, qx = unflatten(query, qh, qw, DIMS)
            qz, qy, qx = qz + dz, qy + dy, qx + dx
            there = there & inside(qz, qy, qx, qd, qh, qw)
            pixel = (qz * qh + qy) * qw + qx
            largest = tl.load(log_mass + pixel, mask=there, other=0)
            log_sum = tl.load(log_mass + queries + pixel, mask=there, other=0)
            weight = tl.exp((found - largest) * factor - log_sum)
            if WIDE:
                pixel = pixel.to(tl.int64)
            g = tl.load(grad + pixel[:, None] * C + channel, mask=there[:, None], other=0).to(TYPE)
            total += tl.where(there[:, None], weight[:, None] * g, 0)
    at = (z * kh + y) * kw + x
    kept = exists[:, None] & (channel < channels)
    tl.store(grad_value + (batch * channels + channel) * keys + at[:, None], total, mask=kept)


@dataclass(frozen=True)
class Attention:
    """Matches, values and how they are averaged.

    Attributes:
        index, score: of the matches, ``(B, k, *Sq)``.
        value: ``(B, Cv, *Sk)``.
        sides: of the window, one per axis.
        temperature: of the softmax.
    """

    index: Tensor
    score: Tensor
    value: Tensor
    sides: tuple[int, ...]
    temperature: float

    @property
    def type(self) -> torch.dtype:
        """Type of sums and weights."""
        return accumulator(self.score.dtype, self.value.dtype)

    @property
    def grids(self) -> tuple[int, ...]:
        return *three(self.index.shape[2:]), *three(self.value.shape[2:])

    @property
    def inverse(self) -> Tensor:
        """1 / temperature as a tensor: a float argument of a kernel would be rounded to float32."""
        inverse = inverse_temperature(self.temperature, self.type)
        return torch.full((), inverse, dtype=self.type, device=self.value.device)

    @property
    def constants(self) -> dict[str, Any]:
        blocks = channel_blocks(self.value.shape[1])
        pixels = max(math.prod(x.shape[2:]) for x in (self.index, self.value))
        return {
            **tile_constants(len(self.sides)),
            **dict(zip(("PZ", "PY", "PX"), three(self.sides), strict=True)),
            "C": blocks.count,
            "CB": blocks.size,
            "WIDE": pixels * blocks.count > 2**31 - 1,
            "TYPE": TYPES.get(self.type, tl.float32),
        }


def attend(inputs: Attention) -> tuple[Tensor, Tensor]:
    """Return the average ``(B, Cv, *Sq)``, in float32 or float64, and log_mass ``(B, 2, *Sq)``."""
    batch, neighbors, *sq = inputs.index.shape
    channels, constants = inputs.value.shape[1], inputs.constants
    out = inputs.value.new_empty((batch, channels, *sq), dtype=inputs.type)
    log_mass = inputs.score.new_empty((batch, 2, *sq), dtype=inputs.type)
    if batch == 0:
        return out, log_mass
    programs = batch * tiles_over(sq, constants) * (constants["C"] // constants["CB"])
    average[(programs,)](
        inputs.index.contiguous(), inputs.score.contiguous(), channels_last(inputs.value), out, log_mass,
        inputs.inverse, neighbors, channels, *inputs.grids, **constants, **OPTIONS,
    )  # fmt: skip
    return out, log_mass


def attend_gradients(inputs: Attention, grad: Tensor, out: Tensor, log_mass: Tensor) -> tuple[Tensor, Tensor]:
    """Return the gradients of score and value; ``grad`` is that of the output, ``(B, Cv, *Sq)``."""
    batch, neighbors, *sq = inputs.index.shape
    channels, constants = inputs.value.shape[1], inputs.constants
    index, score, log_mass = inputs.index.contiguous(), inputs.score.contiguous(), log_mass.contiguous()
    grad_score, grad_value = torch.empty_like(score), inputs.value.new_empty(inputs.value.shape)
    if batch == 0:
        return grad_score, grad_value
    grad_map = channels_last(grad)
    score_gradient[(batch * tiles_over(sq, constants),)](
        index, score, channels_last(inputs.value), channels_last(out), grad_map, log_mass, grad_score,
        inputs.inverse, neighbors, *inputs.grids, **constants, **OPTIONS,
    )  # fmt: skip
    sk = inputs.value.shape[2:]
    by_key = links.by_key(index.flatten(2), (score.flatten(2),), math.prod(sk))
    programs = batch * tiles_over(sk, constants) * (constants["C"] // constants["CB"])
    value_gradient[(programs,)](
        by_key.start, by_key.far_end, *by_key.weights, grad_map, log_mass, grad_value,
        inputs.inverse, by_key.far_end.shape[1], channels, *inputs.grids, **constants, **OPTIONS,
    )  # fmt: skip
    return grad_score, grad_value
