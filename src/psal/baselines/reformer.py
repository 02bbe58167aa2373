"""Reformer (Kitaev et al. 2020): attention within buckets of locality-sensitive hashing, for cross-attention."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from psal import checks
from psal.baselines.patches import (
    CHUNK_ELEMENTS,
    Patches,
    PatchLayer,
    biased_keys,
    map_of,
    pixels_of,
    recomputed,
    scaled_queries,
)
from psal.ops.exact import center_of
from psal.options import SIMILARITIES
from psal.seeds import check_seed, draw_seed


class ReformerAttention(PatchLayer):
    """Attention between patches with the same hash.

    Each round hashes all patches by random rotations, sorts queries and keys in one sequence by bucket, and splits it
    into chunks. A query attends to the keys of its bucket in its own chunk and the two adjacent ones. If there are
    none, which happens in cross-attention, it attends to all keys of those chunks; without any key its output is zero.
    Rounds are weighted by their softmax mass.

    Args:
        patch_size: odd side of the compared patches, an int or one per axis.
        rounds: number of independent hashings.
        chunk_size: patches per chunk.
        buckets: number of buckets, a power of two; None takes about one per chunk.
        similarity: "dot", "l2" (negative squared distance) or "cosine"; the hash always depends on angles alone.
        temperature: softmax temperature; None takes √d for patches of d elements, as in transformers.
        seed: seed of the rotations; None draws one from torch's generator in every call.
        padding_mode: values of a map beyond its border: "replicate", "reflect" or "zeros".

    Raises:
        ValueError, TypeError: if an argument is not as described.

    >>> import torch
    >>> image, reference = torch.rand(1, 3, 8, 8), torch.rand(1, 3, 9, 7)
    >>> ReformerAttention(patch_size=3, rounds=2)(image, reference, reference).shape
    torch.Size([1, 3, 8, 8])
    """

    def __init__(
        self,
        patch_size: int | Sequence[int] = 7,
        *,
        rounds: int = 4,
        chunk_size: int = 64,
        buckets: int | None = None,
        similarity: str = "dot",
        temperature: float | None = None,
        seed: int | None = None,
        padding_mode: str = "replicate",
    ) -> None:
        super().__init__(patch_size, padding_mode)
        checks.check_count("rounds", rounds, 1)
        checks.check_count("chunk_size", chunk_size, 1)
        if buckets is not None:
            checks.check_count("buckets", buckets, 1)
            if buckets & (buckets - 1):
                raise ValueError(f"buckets must be a power of two, got {buckets}")
        checks.check_word("similarity", similarity, SIMILARITIES)
        if temperature is not None:
            checks.check_temperature(temperature)
        check_seed(seed)
        self.rounds = rounds
        self.chunk_size = chunk_size
        self.buckets = buckets
        self.similarity = similarity
        self.temperature = temperature
        self.seed = seed

    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        hashed = self.patches(query), self.patches(key)
        center = center_of(key, self.similarity)
        queries, keys = self.patches(query, center), self.patches(key, center)
        temperature = self.temperature or math.sqrt(keys.dimension)
        buckets = self.buckets or 2 ** max(1, round(math.log2((len(queries) + len(keys)) / self.chunk_size)))
        seed = int(draw_seed(None)) if self.seed is None else self.seed
        generator = torch.Generator().manual_seed(seed)
        found, mass = [], []
        for _ in range(self.rounds):
            rotations = _rotations(keys.dimension, buckets, generator)
            bucket = torch.cat([_buckets(patches, [r.to(query) for r in rotations]) for patches in hashed], 1)
            out, log_mass = self._round(queries, keys, pixels_of(value), bucket, temperature)
            found.append(out)
            mass.append(log_mass)
        weights = _softmax(torch.stack(mass), torch.stack(mass).isfinite(), 0)[0]  # [rounds, B, N]
        return map_of((weights[..., None] * torch.stack(found)).sum(0), query.shape[2:])

    def _round(
        self, queries: Patches, keys: Patches, values: Tensor, bucket: Tensor, temperature: float
    ) -> tuple[Tensor, Tensor]:
        """Return one round's output ``(B, N, Cv)`` and log of the softmax mass ``(B, N)``."""
        batch, channels = values.shape[0], values.shape[2]
        chunks = _sorted_chunks(bucket, self.chunk_size, len(queries))
        group = max(1, CHUNK_ELEMENTS // (3 * self.chunk_size * keys.dimension))

        def attend(chunk: slice) -> Tensor:
            seen = chunks.members(chunk)  # [n + 2, m], including the adjacent chunks
            q = queries.at(seen.batch[1:-1].flatten(), seen.query[1:-1].flatten()).reshape(*seen.query[1:-1].shape, -1)
            k = keys.at(seen.batch.flatten(), seen.key.flatten()).reshape(*seen.key.shape, -1)  # [n + 2, m, d]
            v = values.flatten(0, 1)[seen.batch * len(keys) + seen.key]  # [n + 2, m, Cv]
            k, bias = biased_keys(k, self.similarity, temperature)
            score = scaled_queries(q, self.similarity, temperature) @ _with_neighbors(k).mT  # [n, m, 3m]
            score = score if bias is None else score + _with_neighbors(bias.mT).mT
            same_map = _with_neighbors(seen.batch) == seen.batch[1:-1, :1]
            is_key = (_with_neighbors(seen.is_key) & same_map)[:, None]
            same = is_key & (_with_neighbors(seen.bucket)[:, None] == seen.bucket[1:-1, :, None])
            weights, log_mass = _softmax(score, torch.where(same.any(-1, keepdim=True), same, is_key), -1)
            return torch.cat([weights @ _with_neighbors(v), log_mass[..., None]], -1)  # [n, m, Cv + 1]

        parts = [recomputed(lambda c=c: attend(c)) for c in chunks.groups(group)]
        rows = torch.cat(parts).flatten(0, 1)  # [sequence, Cv + 1], in sorted order
        rows = rows.index_select(0, chunks.query_position.flatten()).reshape(batch, len(queries), channels + 1)
        return rows[..., :-1], rows[..., -1]


@dataclass(frozen=True)
class _Members:
    """The patches in some chunks, all ``(chunks, chunk_size)``; an index is 0 where the patch is of the other kind."""

    batch: Tensor
    bucket: Tensor
    query: Tensor
    key: Tensor
    is_key: Tensor


@dataclass(frozen=True)
class _Chunks:
    """The sorted sequence of all batch elements, cut into chunks ``(B · chunks, chunk_size)``."""

    member: Tensor  # index of the query, or that of the key plus the number of queries; −1 for padding
    bucket: Tensor
    queries: int
    per_element: int  # chunks per batch element
    query_position: Tensor  # [B, N], in the sorted sequence of all batch elements

    def groups(self, size: int) -> list[slice]:
        return [slice(i, min(i + size, len(self.member))) for i in range(0, len(self.member), size)]

    def members(self, chunk: slice) -> _Members:
        """Return the patches of some chunks and the two adjacent ones, padding where there is none."""
        index = torch.arange(chunk.start - 1, chunk.stop + 1, device=self.member.device)
        exists = (index >= 0) & (index < len(self.member))
        index = index.clamp(0, len(self.member) - 1)
        member = self.member[index].where(exists[:, None], -1)
        is_key = member >= self.queries
        return _Members(
            (index // self.per_element)[:, None].expand_as(member),
            self.bucket[index],
            member.where((member >= 0) & ~is_key, 0),
            (member - self.queries).where(is_key, 0),
            is_key,
        )


def _with_neighbors(x: Tensor) -> Tensor:
    """Concatenate each inner chunk of ``(n + 2, m, …)`` with its two neighbors: ``(n, 3m, …)``."""
    return torch.cat([x[:-2], x[1:-1], x[2:]], 1)


def _sorted_chunks(bucket: Tensor, chunk_size: int, queries: int) -> _Chunks:
    """Sort the sequence ``(B, N + M)`` by bucket, then by position in the map, and split it into chunks."""
    batch, length = bucket.shape
    keys = length - queries
    position = torch.cat([torch.arange(queries) * keys, torch.arange(keys) * queries]).to(bucket.device)
    mixed = position.argsort(stable=True)  # interleaves queries and keys, so queries of a large bucket see keys
    order = mixed[bucket[:, mixed].argsort(dim=1, stable=True)]
    padding = -length % chunk_size
    first = (length + padding) * torch.arange(batch, device=order.device)[:, None]
    member = F.pad(order, (0, padding), value=-1).reshape(-1, chunk_size)
    sorted_bucket = F.pad(bucket.gather(1, order), (0, padding), value=-1).reshape(-1, chunk_size)
    return _Chunks(
        member, sorted_bucket, queries, (length + padding) // chunk_size, order.argsort(dim=1)[:, :queries] + first
    )


def _rotations(dimension: int, buckets: int, generator: torch.Generator) -> list[Tensor]:
    """Draw two hashes whose product has ``buckets`` values, which costs far less than one hash with as many."""
    bits = buckets.bit_length() - 1
    sizes = [2**part for part in (bits // 2, bits - bits // 2) if part]
    return [torch.randn(dimension, size // 2, generator=generator, dtype=torch.float64) for size in sizes]


def _buckets(patches: Patches, rotations: list[Tensor]) -> Tensor:
    """Return the bucket ``(B, n)`` of every patch: the nearest half-axis of a random frame."""

    def of(rows: slice) -> Tensor:
        vectors = patches.band(rows)
        bucket = torch.zeros(vectors.shape[:2], dtype=torch.int64, device=vectors.device)
        for rotation in rotations:
            rotated = vectors @ rotation
            bucket = bucket * 2 * rotation.shape[1] + torch.cat([rotated, -rotated], -1).argmax(-1)
        return bucket

    with torch.no_grad():
        return torch.cat([of(rows) for rows in patches.bands(patches.dimension)], 1)


def _softmax(logits: Tensor, allowed: Tensor, axis: int) -> tuple[Tensor, Tensor]:
    """Return the softmax over allowed elements, zero where there are none, and the log of its mass."""
    lowest = torch.finfo(logits.dtype).min
    logits = logits.masked_fill(~allowed, lowest)
    top = logits.detach().amax(axis, keepdim=True)
    exponentials = (logits - top).exp() * allowed
    mass = exponentials.sum(axis, keepdim=True)
    some = mass > 0
    log_mass = (top + mass.where(some, 1).log()).masked_fill(~some, -torch.inf)
    return exponentials / mass.where(some, 1), log_mass.squeeze(axis)
