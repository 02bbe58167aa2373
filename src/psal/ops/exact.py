"""Exhaustive search by matrix products, in chunks: the ground truth that PatchMatch approximates.

Shapes: C channels, N query pixels on the grid *Sq, M valid keys, n queries of one chunk, d elements of a patch.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from psal.checks import check_scores
from psal.ops import grid
from psal.ops.grid import NORM_EPSILON
from psal.options import SearchOptions, Similarity

CHUNK_ELEMENTS = 2**24  # scores held at once: 64 MB in float32
BLOCK = 64  # columns per block of `top`
SPARE = 8  # candidates per query beyond the k that are asked for


def exact_candidates(
    query: Tensor, key: Tensor, key_mask: Tensor | None, query_mask: Tensor | None, options: SearchOptions
) -> Tensor:
    """Find keys among which the k best of all keys are; arguments as in :meth:`psal.ops.Backend.search`.

    Matrix products rank the keys. They round more coarsely than scores do, hence the spare candidates. Where those are
    too few to be sure ("l2" only: differences of nearly equal patches), float64 decides.

    Returns:
        index ``(B, m, *Sq)`` with m ≥ k, in any order; −1 where ``query_mask`` is False, and if there are too few keys.
    """
    sides, similarity = options.sides(query.ndim - 2), options.similarity
    sq, sk = query.shape[2:], key.shape[2:]
    spare = 0 if callable(similarity) else SPARE
    count = min(options.neighbors + spare, math.prod(sk))
    center = center_of(key, similarity)
    index = torch.full((query.shape[0], count, math.prod(sq)), -1, dtype=torch.int64, device=query.device)
    with torch.no_grad(), torch.autocast(query.device.type, enabled=False):
        for b in range(query.shape[0]):
            keys = torch.arange(math.prod(sk), device=key.device)
            queries = torch.arange(math.prod(sq), device=query.device)
            if key_mask is not None:
                keys = keys[key_mask[b].flatten()]  # [M]
            if query_mask is not None:
                queries = queries[query_mask[b].flatten()]
            key_rows = PatchRows(key[b], sides, options.padding_mode, center[b])
            query_rows = PatchRows(query[b], sides, options.padding_mode, center[b])
            key_patches, bias = rankable(key_rows.read(keys), similarity)  # [M, d], [M]
            finite = bool(key_patches.square().sum().isfinite()) and bool(query[b].square().sum().isfinite())
            kept = min(count, len(keys))
            rows = max(1, CHUNK_ELEMENTS // max(key_patches.shape))
            unsure = []
            for chunk in torch.split(queries, rows) if len(queries) else ():  # [n]
                query_patches = query_rows.read(chunk)  # [n, d]
                scores = pair_scores(query_patches, key_patches, bias, similarity)  # [n, M]
                best = top(without_nan(scores, finite), kept)  # [n, m]
                if similarity == "l2" and kept < len(keys) and scores.dtype == torch.float32:
                    unsure.append(chunk[is_unsure(query_patches, scores.gather(1, best), options.neighbors)])
                index[b, :kept, chunk] = keys[best].T
            left = torch.cat([*unsure, queries[:0]])
            if len(left):
                del key_patches, bias
                index[b, :kept, left] = top_in_float64(query_rows, left, key_rows, keys, kept, finite).T
    return index.reshape(query.shape[0], count, *sq)


def is_unsure(query_patches: Tensor, scores: Tensor, neighbors: int) -> Tensor:
    """Return the queries for which rounding may have kept one of the k best keys out of the candidates.

    Args:
        query_patches: ``(n, d)``.
        scores: of the candidates, ``(n, m)``: q·k − ‖k‖² / 2.
        neighbors: k.

    Returns:
        bool ``(n,)``.
    """
    best = scores.sort(dim=1, descending=True).values
    length = query_patches.norm(dim=1)  # ‖q‖
    distance = (length.square() - 2 * best[:, neighbors - 1]).clamp_min(0).sqrt()  # to the k-th best key
    reach = length + distance  # an upper bound of ‖k‖ for the keys in question
    # Errors of a sum of d products add up like a random walk; 4 √d ε of their magnitude is more than ten sigma.
    rounding = 4 * query_patches.shape[1] ** 0.5 * torch.finfo(scores.dtype).eps * reach * (length + reach / 2)
    sure: Tensor = best[:, -1] < best[:, neighbors - 1] - 2 * rounding  # not for NaN
    return ~sure


def top_in_float64(
    query_rows: "PatchRows", queries: Tensor, key_rows: "PatchRows", keys: Tensor, count: int, finite: bool
) -> Tensor:
    """Return the ``count`` best of the keys ``(M,)`` by "l2" for each of the queries ``(n,)``: ``(n, count)``.

    Keys are read once, a part at a time, and the best of the parts so far are kept.
    """
    query_patches = query_rows.read(queries, torch.float64)  # [n, d]
    score = query_patches.new_empty(len(queries), count)  # of the best keys so far
    best = torch.empty_like(score, dtype=torch.int64)
    size = max(count, CHUNK_ELEMENTS // query_patches.shape[1])
    for number, part in enumerate(torch.split(keys, size)):
        key_patches, bias = rankable(key_rows.read(part, torch.float64), "l2")
        for chunk in torch.split(torch.arange(len(queries), device=keys.device), max(1, CHUNK_ELEMENTS // len(part))):
            scores = without_nan(pair_scores(query_patches[chunk], key_patches, bias, "l2"), finite)  # [n, part]
            columns = top(scores, min(count, len(part)))
            scores, found = scores.gather(1, columns), part[columns]
            if number:
                scores, found = torch.cat([score[chunk], scores], 1), torch.cat([best[chunk], found], 1)
            columns = scores.topk(count, dim=1).indices
            score[chunk], best[chunk] = scores.gather(1, columns), found.gather(1, columns)
    return best


def without_nan(scores: Tensor, finite: bool) -> Tensor:
    """Let NaN rank last; topk ranks it first. ``finite`` says that there is none."""
    return scores if finite else scores.nan_to_num(nan=-math.inf, posinf=math.inf, neginf=-math.inf)


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


def center_of(key: Tensor, similarity: Similarity) -> Tensor:
    """Return what is subtracted from all pixels, ``(B, C, 1, …)``: for "l2" the key's mean per channel, otherwise 0.

    Distances do not change, and products of patches lose fewer digits to rounding. It has to be done after padding.
    """
    mean = key.detach().flatten(2).mean(2).reshape(*key.shape[:2], *[1] * (key.ndim - 2))
    return mean.where(mean.isfinite(), 0) if similarity == "l2" else torch.zeros_like(mean)


class PatchRows:
    """The patches of a map ``(C, *S)``, as rows, with ``center`` ``(C, 1, …)`` subtracted from every pixel."""

    def __init__(self, x: Tensor, sides: Sequence[int], padding_mode: str, center: Tensor) -> None:
        padded = grid.pad(x[None], sides, padding_mode)[0]
        for axis, side in enumerate(sides, start=1):
            padded = padded.unfold(axis, side, 1)
        self._patches = padded.movedim(0, -1)  # [*S, *sides, C], a view
        self._shape, self._center = tuple(x.shape[1:]), center.flatten().repeat(math.prod(sides))  # [d]

    def read(self, index: Tensor, dtype: torch.dtype | None = None) -> Tensor:
        """Copy the patches at flat indices ``(n,)`` into rows ``(n, d)``."""
        rows: Tensor = self._patches[torch.unravel_index(index, self._shape)].flatten(1)
        return rows.to(dtype or rows.dtype) - self._center


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
