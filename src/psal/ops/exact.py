"""Exhaustive search by matrix products, in chunks: the ground truth that PatchMatch approximates.

Shapes: C channels, N query pixels on the grid *Sq, M valid keys, n queries of one chunk, d elements of a patch.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from psal.checks import check_scores
from psal.ops import grid
from psal.ops.reference import NORM_EPSILON
from psal.options import SearchOptions, Similarity

CHUNK_ELEMENTS = 2**24  # scores held at once: 64 MB in float32
BLOCK = 64  # columns per block of `top`


def exact_index(
    query: Tensor, key: Tensor, key_mask: Tensor | None, query_mask: Tensor | None, options: SearchOptions
) -> Tensor:
    """Find the k best of all keys; arguments as in :meth:`psal.ops.Backend.search`.

    Returns:
        index ``(B, k, *Sq)``, best first up to rounding; −1 where ``query_mask`` is False.
    """
    sides, similarity, neighbors = options.sides(query.ndim - 2), options.similarity, options.neighbors
    with torch.no_grad(), torch.autocast(query.device.type, enabled=False):
        query, key = centered(query, key, similarity)
        sq = query.shape[2:]
        index = torch.full((query.shape[0], neighbors, math.prod(sq)), -1, dtype=torch.int64, device=query.device)
        for b in range(query.shape[0]):
            keys = torch.arange(math.prod(key.shape[2:]), device=key.device)
            queries = torch.arange(math.prod(sq), device=query.device)
            if key_mask is not None:
                keys = keys[key_mask[b].flatten()]  # [M]
            if query_mask is not None:
                queries = queries[query_mask[b].flatten()]
            key_view = patch_view(key[b], sides, options.padding_mode)
            key_patches, bias = rankable(patch_rows(key_view, key.shape[2:], keys), similarity)  # [M, d], [M]
            query_view = patch_view(query[b], sides, options.padding_mode)
            finite = bool(key_patches.square().sum().isfinite()) and bool(query[b].square().sum().isfinite())
            rows = max(1, CHUNK_ELEMENTS // max(len(keys), math.prod(sides) * query.shape[1]))
            for chunk in torch.split(queries, rows):  # [n]
                query_patches = patch_rows(query_view, sq, chunk)  # [n, d]
                scores = pair_scores(query_patches, key_patches, bias, similarity)  # [n, M]
                if not finite:  # topk ranks NaN above all numbers
                    scores = scores.nan_to_num(nan=-math.inf, posinf=math.inf, neginf=-math.inf)
                index[b, :, chunk] = keys[top(scores, neighbors)].T
        return index.reshape(query.shape[0], neighbors, *sq)


def top(scores: Tensor, count: int) -> Tensor:
    """Return the columns ``(n, count)`` of the largest scores of each row ``(n, M)``, in any order.

    Whole blocks are ranked by their maxima first: topk over complete rows takes longer than the matrix product.
    """
    rows, columns = scores.shape
    whole = columns // BLOCK * BLOCK
    if whole // BLOCK < count or columns < 4 * BLOCK:
        return scores.topk(count, dim=1).indices
    blocks = scores[:, :whole].reshape(rows, -1, BLOCK)  # [n, blocks, BLOCK]
    best = blocks.amax(2).topk(count, dim=1).indices  # the `count` best lie in the blocks with the largest maxima
    in_blocks = (best[:, :, None] * BLOCK + torch.arange(BLOCK, device=scores.device)).flatten(1)
    rest = torch.arange(whole, columns, device=scores.device).expand(rows, -1)
    candidates = torch.cat([in_blocks, rest], 1)
    return candidates.gather(1, scores.gather(1, candidates).topk(count, dim=1).indices)


def centered(query: Tensor, key: Tensor, similarity: Similarity) -> tuple[Tensor, Tensor]:
    """Subtract the key's mean per channel from both maps if the similarity is "l2".

    Distances do not change, and products of patches lose fewer digits to rounding.
    """
    if similarity != "l2":
        return query, key
    mean = key.detach().flatten(2).mean(2).reshape(*key.shape[:2], *[1] * (key.ndim - 2))
    mean = mean.where(mean.isfinite(), 0)
    return query - mean, key - mean


def patch_view(x: Tensor, sides: Sequence[int], padding_mode: str) -> Tensor:
    """Return all patches of a map ``(C, *S)`` as a view ``(*S, *sides, C)``."""
    padded = grid.pad(x[None], sides, padding_mode)[0]
    for axis, side in enumerate(sides, start=1):
        padded = padded.unfold(axis, side, 1)
    return padded.movedim(0, -1)


def patch_rows(view: Tensor, shape: Sequence[int], index: Tensor) -> Tensor:
    """Copy the patches at flat indices ``(n,)`` of a grid of that shape into rows ``(n, d)``."""
    rows: Tensor = view[torch.unravel_index(index, tuple(shape))]
    return rows.flatten(1)


def rankable(key_patches: Tensor, similarity: Similarity) -> tuple[Tensor, Tensor | None]:
    """Return keys and biases such that ``query @ keys.T + bias`` ranks the keys as the similarity does."""
    if similarity == "l2":  # −‖q − k‖² = 2 (q·k − ‖k‖² / 2) − ‖q‖², and the last term is the same for all keys
        return key_patches, key_patches.square().sum(1) / -2
    if similarity == "cosine":
        return key_patches / key_patches.norm(dim=1, keepdim=True).clamp_min(NORM_EPSILON), None
    return key_patches, None


def pair_scores(query_patches: Tensor, keys: Tensor, bias: Tensor | None, similarity: Similarity) -> Tensor:
    """Return scores ``(n, M)`` that rank the keys of each query; comparable within a row only."""
    if callable(similarity):
        rows = (similarity(q[None].expand_as(keys), keys) for q in query_patches.unbind())
        return torch.stack([check_scores(row, keys) for row in rows])
    return query_patches @ keys.T if bias is None else torch.addmm(bias, query_patches, keys.T)
