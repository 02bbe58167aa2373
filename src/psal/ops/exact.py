"""Exhaustive search by matrix products, in chunks: the truth that PatchMatch approximates."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from psal.ops import reference
from psal.ops.reference import NORM_EPSILON, Similarity

CHUNK_ELEMENTS = 2**24  # scores held at once: 64 MB in float32
BLOCK = 64


def exact_index(
    query: Tensor,
    key: Tensor,
    patch_size: Sequence[int],
    neighbors: int,
    similarity: Similarity,
    key_mask: Tensor | None,
    query_mask: Tensor | None,
    padding_mode: str,
) -> Tensor:
    """Index ``(B, k, *Sq)`` of the k best of all keys; −1 where ``query_mask`` is False."""
    with torch.no_grad(), torch.autocast(query.device.type, enabled=False):
        query, key = centred(query, key, similarity)
        sq = query.shape[2:]
        index = torch.full((query.shape[0], neighbors, math.prod(sq)), -1, dtype=torch.int64, device=query.device)
        for b in range(query.shape[0]):
            keys = torch.arange(math.prod(key.shape[2:]), device=key.device)
            queries = torch.arange(math.prod(sq), device=query.device)
            if key_mask is not None:
                keys = keys[key_mask[b].flatten()]
            if query_mask is not None:
                queries = queries[query_mask[b].flatten()]
            key_view = patch_view(key[b], patch_size, padding_mode)
            key_patches, bias = rankable(patch_rows(key_view, key.shape[2:], keys), similarity)  # [M, d]
            query_view = patch_view(query[b], patch_size, padding_mode)
            sane = bool(key_patches.square().sum().isfinite()) and bool(query[b].square().sum().isfinite())
            rows = max(1, CHUNK_ELEMENTS // max(len(keys), math.prod(patch_size) * query.shape[1]))
            for chunk in torch.split(queries, rows):
                query_patches = patch_rows(query_view, sq, chunk)  # [n, d]
                scores = pair_scores(query_patches, key_patches, bias, similarity)  # [n, M]
                if not sane:  # topk takes NaN for the largest of all
                    scores = scores.nan_to_num(nan=-math.inf, posinf=math.inf, neginf=-math.inf)
                index[b, :, chunk] = keys[top(scores, neighbors)].T
        return index.reshape(query.shape[0], neighbors, *sq)


def top(scores: Tensor, count: int) -> Tensor:
    """Positions ``(n, count)`` of the largest of each row, in any order.

    The maxima of blocks are compared first, because topk over whole rows takes longer than the products.
    """
    rows, columns = scores.shape
    whole = columns // BLOCK * BLOCK
    if whole // BLOCK < count or columns < 4 * BLOCK:
        return scores.topk(count, dim=1).indices
    blocks = scores[:, :whole].reshape(rows, -1, BLOCK)
    best = blocks.amax(2).topk(count, dim=1).indices  # the k best lie in the k blocks with the largest maxima
    inside = (best[:, :, None] * BLOCK + torch.arange(BLOCK, device=scores.device)).flatten(1)
    rest = torch.arange(whole, columns, device=scores.device).expand(rows, -1)
    candidates = torch.cat([inside, rest], 1)
    return candidates.gather(1, scores.gather(1, candidates).topk(count, dim=1).indices)


def centred(query: Tensor, key: Tensor, similarity: Similarity) -> tuple[Tensor, Tensor]:
    """For "l2", both maps without the key's mean: distances stay, and products of patches lose fewer digits."""
    if similarity != "l2":
        return query, key
    mean = key.detach().flatten(2).mean(2).reshape(*key.shape[:2], *[1] * (key.ndim - 2))
    mean = mean.where(mean.isfinite(), 0)
    return query - mean, key - mean


def patch_view(x: Tensor, patch_size: Sequence[int], padding_mode: str) -> Tensor:
    """All patches of a map ``(C, *S)``, as a view ``(*S, *patch_size, C)``."""
    padded = reference.pad(x[None], patch_size, padding_mode)[0]
    for axis, side in enumerate(patch_size, start=1):
        padded = padded.unfold(axis, side, 1)
    return padded.movedim(0, -1)


def patch_rows(view: Tensor, grid: Sequence[int], at: Tensor) -> Tensor:
    """The patches around flat positions ``(n,)`` of the grid, as rows ``(n, d)``."""
    rows: Tensor = view[torch.unravel_index(at, tuple(grid))]
    return rows.flatten(1)


def rankable(key_patches: Tensor, similarity: Similarity) -> tuple[Tensor, Tensor | None]:
    """Keys and a bias for each, so that ``query @ keys.T + bias`` ranks them as the similarity does."""
    if similarity == "l2":  # −‖q − k‖² = 2 (q·k − ‖k‖² / 2) − ‖q‖², and the last is the same for all keys
        return key_patches, key_patches.square().sum(1) / -2
    if similarity == "cosine":
        return key_patches / key_patches.norm(dim=1, keepdim=True).clamp_min(NORM_EPSILON), None
    return key_patches, None


def pair_scores(query_patches: Tensor, keys: Tensor, bias: Tensor | None, similarity: Similarity) -> Tensor:
    """What all pairs are ranked by, ``(n, M)``."""
    if callable(similarity):
        return torch.stack([similarity(q[None].expand_as(keys), keys) for q in query_patches.unbind()])
    return query_patches @ keys.T if bias is None else torch.addmm(bias, query_patches, keys.T)
