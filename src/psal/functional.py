"""The public functions: they check arguments, convert types and call the ops."""

import math
from collections.abc import Sequence
from typing import Literal, Unpack, overload

import torch
from torch import Tensor

from psal import checks, ops
from psal.matches import Matches, best_first
from psal.ops.backends import HALF_TYPES, choose_backend, takes_half_types
from psal.ops.exact import exact_candidates
from psal.options import SearchKeywords, SearchOptions, Similarity
from psal.precision import working_type


def patch_match(
    query: Tensor,
    key: Tensor,
    *,
    patch_size: int | Sequence[int] = 7,
    neighbors: int = 3,
    iterations: int | None = None,
    similarity: Similarity = "l2",
    init: str | Matches | None = None,
    key_mask: Tensor | None = None,
    query_mask: Tensor | None = None,
    padding_mode: str = "replicate",
    seed: int | None = None,
    backend: str | None = None,
) -> Matches:
    """Find the k keys with the most similar patches for every query pixel, approximately, by PatchMatch.

    Args:
        query: ``(B, C, *Sq)``, one to three spatial dimensions.
        key: ``(B, C, *Sk)``; its size may differ from the query's.
        patch_size: odd side of the compared patches, an int or one int per spatial dimension.
        neighbors: k, the number of matches per query.
        iterations: rounds of propagation and random search; None takes the default of ``init``: 5 for "random", else 1.
        similarity: "l2" (negative squared distance), "dot", "cosine", or a callable
            ``(query_patches, key_patches) -> scores`` on ``(..., d)`` tensors, which runs on the reference backend.
        init: "tree", "random" (as in the paper), or earlier :class:`Matches` of a query of this size as a warm start.
            None takes "tree" on the native and the Triton backend, and "random" on the reference.
        key_mask: bool ``(B, 1, *Sk)``, True where a key may be matched.
        query_mask: bool ``(B, 1, *Sq)``, True where a query takes part.
        padding_mode: values of a map beyond its border: "replicate", "reflect" or "zeros".
        seed: seed of the random numbers; None draws one from torch's generator.
        backend: "native" (CPU), "triton" (CUDA, ROCm), "reference" (any device), or None for the fastest that can run
            the search; :func:`psal.backends` lists them.

    Returns:
        :class:`Matches`; the score has the type of query and key.

    Raises:
        ValueError, TypeError: if an argument is not as described.

    >>> image = torch.rand(1, 3, 20, 30)
    >>> matches = patch_match(image, image.roll(5, dims=3), neighbors=2)
    >>> matches.index.shape
    torch.Size([1, 2, 20, 30])
    """
    options = SearchOptions(patch_size, neighbors, iterations, similarity, init, padding_mode, seed, backend)
    return _in_type_of(query, key, _search(query, key, key_mask, query_mask, options))


def exact_match(
    query: Tensor,
    key: Tensor,
    *,
    patch_size: int | Sequence[int] = 7,
    neighbors: int = 3,
    similarity: Similarity = "l2",
    key_mask: Tensor | None = None,
    query_mask: Tensor | None = None,
    padding_mode: str = "replicate",
) -> Matches:
    """Find the k keys with the most similar patches for every query pixel by comparing all pairs, in chunks.

    Slow, and the ground truth for :func:`patch_match`.

    Args:
        query, key, patch_size, neighbors, similarity, key_mask, query_mask, padding_mode: as in :func:`patch_match`.

    Returns:
        :class:`Matches`; scores carry gradients.

    Raises:
        ValueError, TypeError: if an argument is not as described.

    >>> image = torch.rand(1, 3, 8, 9)
    >>> exact_match(image, image, neighbors=1).index.flatten().equal(torch.arange(72))
    True
    """
    options = SearchOptions(patch_size, neighbors, similarity=similarity, padding_mode=padding_mode)
    key_mask = _check_maps(query, key, key_mask, query_mask, options)
    working = working_type(query, key)
    query_map, key_map = query.to(working), key.to(working)
    with torch.no_grad():
        candidates = exact_candidates(query_map, key_map, key_mask, query_mask, options)
        best = best_first(Matches(candidates, ops.score(query_map, key_map, candidates, options)))
    index = best.index[:, : options.neighbors].contiguous()
    return _in_type_of(query, key, Matches(index, ops.score(query_map, key_map, index, options)))


def attend(matches: Matches, value: Tensor, *, temperature: float = 1.0) -> Tensor:
    """Average the values at each query's matches, weighted by a softmax of the scores.

    Args:
        matches: result of :func:`patch_match`; index and score are ``(B, k, *Sq)``.
        value: ``(B, Cv, *Sk)``, on the key's grid.
        temperature: softmax temperature; near 0 only the best match counts.

    Returns:
        ``(B, Cv, *Sq)``, in the value's type; 0 for masked queries.

    Raises:
        ValueError, TypeError: if an argument is not as described.

    >>> value = torch.rand(1, 3, 8, 8)
    >>> attend(patch_match(value, value), value, temperature=1e-6).allclose(value)
    True
    """
    return _average(_check_matches(matches, value), value, None, temperature)


def aggregate(
    matches: Matches, value: Tensor, *, patch_size: int | Sequence[int] = 7, temperature: float = 1.0
) -> Tensor:
    """Average the values at the matches of all pixels in a patch window, each shifted back by the pixel's offset.

    Pixel i takes the values at ``ψ(i + δ) − δ`` for every offset δ of the window and each of the k matches ψ of i + δ,
    weighted by one softmax over all of them. Positions outside the key's grid drop out.

    Args:
        matches: result of :func:`patch_match`; index and score are ``(B, k, *Sq)``.
        value: ``(B, Cv, *Sk)``, on the key's grid.
        patch_size: odd side of the window, an int or one int per spatial dimension.
        temperature: softmax temperature; near 0 only the best match of the window counts.

    Returns:
        ``(B, Cv, *Sq)``, in the value's type; 0 where no match is left.

    Raises:
        ValueError, TypeError: if an argument is not as described.

    >>> value = torch.rand(1, 3, 8, 8)
    >>> aggregate(patch_match(value, value), value, temperature=1e-6).allclose(value)
    True
    """
    return _average(_check_matches(matches, value), value, patch_size, temperature)


@overload
def patch_attention(
    query: Tensor, key: Tensor, value: Tensor, *, aggregate: bool = ..., temperature: float = ...,
    return_matches: Literal[False] = ..., **search: Unpack[SearchKeywords],
) -> Tensor: ...  # fmt: skip


@overload
def patch_attention(
    query: Tensor, key: Tensor, value: Tensor, *, aggregate: bool = ..., temperature: float = ...,
    return_matches: Literal[True], **search: Unpack[SearchKeywords],
) -> tuple[Tensor, Matches]: ...  # fmt: skip


@overload
def patch_attention(
    query: Tensor, key: Tensor, value: Tensor, *, aggregate: bool = ..., temperature: float = ...,
    return_matches: bool, **search: Unpack[SearchKeywords],
) -> Tensor | tuple[Tensor, Matches]: ...  # fmt: skip


def patch_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    aggregate: bool = False,
    temperature: float = 1.0,
    return_matches: bool = False,
    patch_size: int | Sequence[int] = 7,
    neighbors: int = 3,
    iterations: int | None = None,
    similarity: Similarity = "l2",
    init: str | Matches | None = None,
    key_mask: Tensor | None = None,
    query_mask: Tensor | None = None,
    padding_mode: str = "replicate",
    seed: int | None = None,
    backend: str | None = None,
) -> Tensor | tuple[Tensor, Matches]:
    """Patch-based stochastic attention: :func:`patch_match`, then :func:`attend` or :func:`aggregate`.

    Args:
        query: ``(B, C, *Sq)``.
        key: ``(B, C, *Sk)``.
        value: ``(B, Cv, *Sk)``.
        aggregate: average over the matches of the whole patch window around each pixel, not the pixel's own alone.
        temperature: softmax temperature; near 0 only the best match counts.
        return_matches: also return the :class:`Matches`.
        patch_size, neighbors, iterations, similarity, init, key_mask, query_mask, padding_mode, seed, backend: as in
            :func:`patch_match`.

    Returns:
        ``(B, Cv, *Sq)`` in the value's type; with ``return_matches``, a pair of that and the matches.

    Raises:
        ValueError, TypeError: if an argument is not as described.

    >>> query, reference = torch.rand(1, 3, 16, 16), torch.rand(1, 3, 20, 12)
    >>> patch_attention(query, reference, reference).shape
    torch.Size([1, 3, 16, 16])
    """
    options = SearchOptions(patch_size, neighbors, iterations, similarity, init, padding_mode, seed, backend)
    out, matches = search_and_average(
        query, key, value, key_mask, query_mask, options, aggregate=aggregate, temperature=temperature
    )
    return (out, _in_type_of(query, key, matches)) if return_matches else out


def search_and_average(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    key_mask: Tensor | None,
    query_mask: Tensor | None,
    options: SearchOptions,
    *,
    aggregate: bool,
    temperature: float,
) -> tuple[Tensor, Matches]:
    """Run :func:`patch_attention` with an options object; the returned scores are float32 or float64."""
    checks.check_map("query", query)
    checks.check_map("key", key)
    checks.check_map("value", value)
    checks.check_value(value, key)
    checks.check_temperature(temperature)
    matches = _search(query, key, key_mask, query_mask, options)
    return _average(matches, value, options.patch_size if aggregate else None, temperature, options.backend), matches


def _search(
    query: Tensor, key: Tensor, key_mask: Tensor | None, query_mask: Tensor | None, options: SearchOptions
) -> Matches:
    """Run :func:`patch_match`; the returned scores are float32 or float64."""
    key_mask = _check_maps(query, key, key_mask, query_mask, options)
    if isinstance(options.init, tuple):
        checks.check_matches("init", options.init, query.shape)
        checks.check_device("init.index", options.init[0], query.device)
    working = working_type(query, key)
    if query.dtype == key.dtype and _takes(query, options.backend, options.similarity, options.neighbors):
        working = query.dtype
    return ops.search(query.to(working), key.to(working), key_mask, query_mask, options)


def _average(
    matches: Matches,
    value: Tensor,
    patch_size: int | Sequence[int] | None,
    temperature: float,
    backend: str | None = None,
) -> Tensor:
    """Run :func:`aggregate` over a window of ``patch_size``, or :func:`attend` if that is None."""
    temperature = checks.check_temperature(temperature)
    working = working_type(matches.score, value)
    matches = Matches(matches.index, matches.score.to(working))
    value_type = value.dtype
    if not _takes(value, backend):
        value = value.to(working)
    if patch_size is None:
        out = ops.attend(matches, value, temperature, backend)
    else:
        sides = checks.patch_sides(patch_size, value.ndim - 2)
        checks.check_fits("matches.index", matches.index, sides)
        checks.check_fits("value", value, sides)
        out = ops.aggregate(matches, value, sides, temperature, backend)
    return out.to(value_type)


def _check_maps(
    query: Tensor, key: Tensor, key_mask: Tensor | None, query_mask: Tensor | None, options: SearchOptions
) -> Tensor | None:
    """Check the tensors of a search, and the options that depend on them; return the key mask to use."""
    checks.check_map("query", query)
    checks.check_map("key", key)
    checks.check_same("query", query, "key", key, channels=True)
    checks.check_mask("key_mask", key_mask, key)
    checks.check_mask("query_mask", query_mask, query)
    sides = options.sides(query.ndim - 2)
    checks.check_fits("query", query, sides)
    checks.check_fits("key", key, sides)
    checks.check_match_count(options.neighbors, math.prod(query.shape[2:]))
    return checks.check_enough_keys(options.neighbors, key, key_mask)


def _check_matches(matches: Matches, value: Tensor) -> Matches:
    """Check a caller's matches, or plain (index, score) pair, against the value they index."""
    matches = checks.check_matches("matches", matches)
    checks.check_map("value", value)
    checks.check_same("matches.index", matches.index, "value", value, channels=False)
    checks.check_device("matches.score", matches.score, value.device)
    checks.check_index("matches.index", matches.index, value)
    return matches


def _in_type_of(query: Tensor, key: Tensor, matches: Matches) -> Matches:
    """Convert scores to the type of query and key. Finite ones stay finite in half types: −∞ would mean no match."""
    index, score = matches
    dtype = torch.promote_types(query.dtype, key.dtype)
    if dtype.itemsize == 2:
        limit = torch.finfo(dtype).max
        score = score.clamp(-limit, limit).where(score.isfinite(), score)
    return Matches(index, score.to(dtype))


def _takes(x: Tensor, backend: str | None, similarity: Similarity = "l2", neighbors: int | None = None) -> bool:
    """Whether the backend of a call reads a map of this half type as it is."""
    return x.dtype in HALF_TYPES and takes_half_types(choose_backend(x, similarity, backend, neighbors))
