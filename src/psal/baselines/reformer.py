"""Reformer (Kitaev et al. 2020): attention inside buckets of locality-sensitive hashing, for queries and keys apart."""

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
from psal.ops.exact import centred
from psal.options import SIMILARITIES
from psal.seeds import check_seed, draw_seed


class ReformerAttention(PatchLayer):
    """Attention between patches whose hashes agree.

    In every round all patches, queries and keys in one sequence, are hashed by random rotations, sorted by bucket and
    cut into chunks. A query attends to the keys of its bucket in its own chunk and the ones beside it; where a bucket
    holds no key, as cross-attention brings about, to all keys of those chunks; if there are none, it gets zero. The
    rounds are weighted by the mass of what they found.

    Args:
        patch_size: odd side of the patches that are compared, an int or two.
        rounds: how many times everything is hashed anew.
        chunk_size: patches in a chunk.
        buckets: a power of two; None is about one for each chunk.
        similarity: "dot", "l2" (minus the squared distance) or "cosine"; the hash is of angles always.
        temperature: softmax temperature; None is √d for patches of d numbers, as in transformers.
        seed: of the rotations; None draws one from torch's generator in every call.
        padding_mode: how a map goes on beyond its border: "replicate", "reflect" or "zeros".

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
        query, key = centred(query, key, self.similarity)
        queries, keys = self.patches(query), self.patches(key)
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
        """One hashing's attention ``(B, N, Cv)``, and the log of the mass that each query found, ``(B, N)``."""
        batch, channels = values.shape[0], values.shape[2]
        chunks = _sorted_chunks(bucket, self.chunk_size, len(queries))
        group = max(1, CHUNK_ELEMENTS // (3 * self.chunk_size * keys.dimension))

        def attend(chunk: slice) -> Tensor:
            seen = chunks.members(chunk)  # [n + 2, m], with the chunk before and the one after
            q = queries.at(seen.batch[1:-1].flatten(), seen.query[1:-1].flatten()).reshape(*seen.query[1:-1].shape, -1)
            k = keys.at(seen.batch.flatten(), seen.key.flatten()).reshape(*seen.key.shape, -1)  # [n + 2, m, d]
            v = values.flatten(0, 1)[seen.batch * len(keys) + seen.key]  # [n + 2, m, Cv]
            k, bias = biased_keys(k, self.similarity, temperature)
            score = scaled_queries(q, self.similarity, temperature) @ _beside(k).mT  # [n, m, 3m]
            score = score if bias is None else score + _beside(bias.mT).mT
            same_map = _beside(seen.batch) == seen.batch[1:-1, :1]
            is_key = (_beside(seen.is_key) & same_map)[:, None]
            same = is_key & (_beside(seen.bucket)[:, None] == seen.bucket[1:-1, :, None])
            weights, log_mass = _softmax(score, torch.where(same.any(-1, keepdim=True), same, is_key), -1)
            return torch.cat([weights @ _beside(v), log_mass[..., None]], -1)  # [n, m, Cv + 1]

        parts = [recomputed(lambda c=c: attend(c)) for c in chunks.groups(group)]
        rows = torch.cat(parts).flatten(0, 1)  # one for each place of the sorted sequence
        rows = rows.index_select(0, chunks.place_of_query.flatten()).reshape(batch, len(queries), channels + 1)
        return rows[..., :-1], rows[..., -1]


@dataclass(frozen=True)
class _Members:
    """Who sits in some chunks, all ``(chunks, chunk_size)``; numbers are 0 where somebody of the other kind sits."""

    batch: Tensor
    bucket: Tensor
    query: Tensor
    key: Tensor
    is_key: Tensor


@dataclass(frozen=True)
class _Chunks:
    """The sorted sequence of all batch elements, cut into chunks ``(B · chunks, chunk_size)``."""

    member: Tensor  # number of the query, or that of the key plus all queries; −1 where the last chunk is filled up
    bucket: Tensor
    queries: int
    per_element: int  # chunks
    place_of_query: Tensor  # [B, N]

    def groups(self, size: int) -> list[slice]:
        return [slice(i, min(i + size, len(self.member))) for i in range(0, len(self.member), size)]

    def members(self, chunk: slice) -> _Members:
        """Of some chunks, the one before and the one after; nobody where there is none."""
        number = torch.arange(chunk.start - 1, chunk.stop + 1, device=self.member.device)
        there = (number >= 0) & (number < len(self.member))
        number = number.clamp(0, len(self.member) - 1)
        member = self.member[number].where(there[:, None], -1)
        is_key = member >= self.queries
        return _Members(
            (number // self.per_element)[:, None].expand_as(member),
            self.bucket[number],
            member.where((member >= 0) & ~is_key, 0),
            (member - self.queries).where(is_key, 0),
            is_key,
        )


def _beside(x: Tensor) -> Tensor:
    """From chunks ``(n + 2, m, …)``, each inner one together with its neighbours, ``(n, 3m, …)``."""
    return torch.cat([x[:-2], x[1:-1], x[2:]], 1)


def _sorted_chunks(bucket: Tensor, chunk_size: int, queries: int) -> _Chunks:
    """Sort the sequence ``(B, N + M)`` by bucket, and within one by place in the map, and cut it."""
    batch, length = bucket.shape
    keys = length - queries
    place = torch.cat([torch.arange(queries) * keys, torch.arange(keys) * queries]).to(bucket.device)
    mixed = place.argsort(stable=True)  # queries and keys in turn: or a large bucket's queries would see no keys
    order = mixed[bucket[:, mixed].argsort(dim=1, stable=True)]
    fill = -length % chunk_size
    first = (length + fill) * torch.arange(batch, device=order.device)[:, None]
    member = F.pad(order, (0, fill), value=-1).reshape(-1, chunk_size)
    sorted_bucket = F.pad(bucket.gather(1, order), (0, fill), value=-1).reshape(-1, chunk_size)
    return _Chunks(
        member, sorted_bucket, queries, (length + fill) // chunk_size, order.argsort(dim=1)[:, :queries] + first
    )


def _rotations(dimension: int, buckets: int, generator: torch.Generator) -> list[Tensor]:
    """Two hashes whose buckets multiply: as many buckets for far less work."""
    bits = buckets.bit_length() - 1
    sizes = [2**part for part in (bits // 2, bits - bits // 2) if part]
    return [torch.randn(dimension, size // 2, generator=generator, dtype=torch.float64) for size in sizes]


def _buckets(patches: Patches, rotations: list[Tensor]) -> Tensor:
    """Bucket ``(B, n)`` of every patch: to which of a random frame's half-axes it is nearest."""

    def of(rows: slice) -> Tensor:
        vectors = patches.band(rows)
        number = torch.zeros(vectors.shape[:2], dtype=torch.int64, device=vectors.device)
        for rotation in rotations:
            rotated = vectors @ rotation
            number = number * 2 * rotation.shape[1] + torch.cat([rotated, -rotated], -1).argmax(-1)
        return number

    with torch.no_grad():
        return torch.cat([of(rows) for rows in patches.bands(patches.dimension)], 1)


def _softmax(logits: Tensor, allowed: Tensor, axis: int) -> tuple[Tensor, Tensor]:
    """Softmax over what is allowed, zero where nothing is, and the log of its mass."""
    lowest = torch.finfo(logits.dtype).min
    logits = logits.masked_fill(~allowed, lowest)
    top = logits.detach().amax(axis, keepdim=True)
    exponentials = (logits - top).exp() * allowed
    mass = exponentials.sum(axis, keepdim=True)
    some = mass > 0
    log_mass = (top + mass.where(some, 1).log()).masked_fill(~some, -torch.inf)
    return exponentials / mass.where(some, 1), log_mass.squeeze(axis)
