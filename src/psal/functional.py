"""The public functions: they check, convert types, and call the ops."""

from collections.abc import Sequence

import torch
from torch import Tensor

from psal import checks, ops
from psal.matches import Matches
from psal.ops.exact import exact_index
from psal.options import BACKENDS, INITS, PADDING_MODES, Similarity
from psal.seeds import check_seed, draw_seed

DEFAULT_ITERATIONS = {"random": 5, "tree": 1, "matches": 1}


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
    """Find for every query pixel the k keys whose patches are most similar, approximately, by PatchMatch.

    Args:
        query: ``(B, C, *Sq)``, one to three spatial dimensions.
        key: ``(B, C, *Sk)``; its size may differ from the query's.
        patch_size: odd side of the patches that are compared, an int or one a dimension.
        neighbors: k, how many keys each query gets.
        iterations: rounds of propagation and random search; None is the default of the ``init``.
        similarity: "l2" (minus the squared distance), "dot", "cosine", or a callable
            ``(query_patches, key_patches) -> scores`` on ``(..., d)`` tensors (reference backend).
        init: "tree", "random" (the paper's), or earlier :class:`Matches` of a query of this size as a warm
            start. None is "tree" where the backend has it, "random" elsewhere.
        key_mask: bool ``(B, 1, *Sk)``, True where a key may be matched.
        query_mask: bool ``(B, 1, *Sq)``, True where a query takes part.
        padding_mode: how a map goes on beyond its border: "replicate", "reflect" or "zeros".
        seed: of the random numbers; None draws one from torch's generator.
        backend: "native", "reference", or None for the best there is.

    Returns:
        :class:`Matches`; the score has the type of query and key.

    Raises:
        ValueError, TypeError: if an argument is not as described.

    >>> image = torch.rand(1, 3, 20, 30)
    >>> matches = patch_match(image, image.roll(5, dims=3), neighbors=2)
    >>> matches.index.shape
    torch.Size([1, 2, 20, 30])
    """
    matches = _search(
        query,
        key,
        patch_size,
        neighbors,
        iterations,
        similarity,
        init,
        key_mask,
        query_mask,
        padding_mode,
        seed,
        backend,
    )
    return _in_type_of(query, key, matches)


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
    """The k best keys of every query by comparing all pairs, in chunks: slow, and the truth.

    Args:
        query, key, patch_size, neighbors, similarity, key_mask, query_mask, padding_mode: as in
            :func:`patch_match`.

    Returns:
        :class:`Matches`; scores carry gradients.

    Raises:
        ValueError, TypeError: if an argument is not as described.

    >>> image = torch.rand(1, 3, 8, 9)
    >>> exact_match(image, image, neighbors=1).index.flatten().equal(torch.arange(72))
    True
    """
    sides = _check_maps(query, key, patch_size, neighbors, key_mask, query_mask, padding_mode)
    similarity = checks.check_similarity(similarity)
    backend = ops.choose_backend(query, similarity)
    working = _working_type(query, key)
    query_map, key_map = query.to(working), key.to(working)
    index = exact_index(query_map, key_map, sides, neighbors, similarity, key_mask, query_mask, padding_mode)
    score = ops.score(query_map, key_map, index, sides, similarity, padding_mode, backend)
    sortable = score.detach().nan_to_num(nan=-torch.inf, posinf=torch.inf, neginf=-torch.inf)
    order = sortable.argsort(dim=1, descending=True, stable=True)  # chunks are ranked by rounded scores
    return _in_type_of(query, key, Matches(index.gather(1, order), score.gather(1, order)))


def attend(matches: Matches, value: Tensor, *, temperature: float = 1.0) -> Tensor:
    """Weighted mean of the values that each query matched.

    Args:
        matches: from :func:`patch_match`; index and score are ``(B, k, *Sq)``.
        value: ``(B, Cv, *Sk)``, on the key's grid.
        temperature: softmax temperature; towards 0 only the best match counts.

    Returns:
        ``(B, Cv, *Sq)``, in the value's type; 0 for queries left out.

    Raises:
        ValueError, TypeError: if an argument is not as described.

    >>> value = torch.rand(1, 3, 8, 8)
    >>> attend(patch_match(value, value), value, temperature=1e-6).allclose(value)
    True
    """
    matches = _check_matches(matches, value)
    return _gather(matches, value, None, temperature, None)


def aggregate(
    matches: Matches, value: Tensor, *, patch_size: int | Sequence[int] = 7, temperature: float = 1.0
) -> Tensor:
    """Weighted mean of the values that a pixel's whole neighbourhood matched, each shifted back to the pixel.

    The neighbours of pixel i are all ``ψ(i + δ) − δ`` for δ in the patch window and each of the k matches of
    i + δ, weighted by a softmax over all of them; those outside the key's grid drop out.

    Args:
        matches: from :func:`patch_match`.
        value: ``(B, Cv, *Sk)``, on the key's grid.
        patch_size: the window, as in :func:`patch_match`.
        temperature: softmax temperature.

    Returns:
        ``(B, Cv, *Sq)``, in the value's type; 0 where no neighbour is left.

    Raises:
        ValueError, TypeError: if an argument is not as described.

    >>> value = torch.rand(1, 3, 8, 8)
    >>> aggregate(patch_match(value, value), value, temperature=1e-6).allclose(value)
    True
    """
    matches = _check_matches(matches, value)
    return _gather(matches, value, patch_size, temperature, None)


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
        aggregate: use the matches of the whole patch window around each pixel.
        temperature: softmax temperature.
        return_matches: also return the :class:`Matches`.
        patch_size, neighbors, iterations, similarity, init, key_mask, query_mask, padding_mode, seed, backend: as in
            :func:`patch_match`.

    Returns:
        ``(B, Cv, *Sq)`` in the value's type, or that and the matches.

    Raises:
        ValueError, TypeError: if an argument is not as described.

    >>> query, reference = torch.rand(1, 3, 16, 16), torch.rand(1, 3, 20, 12)
    >>> patch_attention(query, reference, reference).shape
    torch.Size([1, 3, 16, 16])
    """
    checks.check_map("query", query)
    checks.check_map("key", key)
    checks.check_map("value", value)
    checks.check_same("value", value, "key", key, channels=False)
    if key.shape[2:] != value.shape[2:]:
        raise ValueError(f"key and value must be on one grid, got {tuple(key.shape)} and {tuple(value.shape)}")
    checks.check_temperature(temperature)
    matches = _search(
        query,
        key,
        patch_size,
        neighbors,
        iterations,
        similarity,
        init,
        key_mask,
        query_mask,
        padding_mode,
        seed,
        backend,
    )
    out = _gather(matches, value, patch_size if aggregate else None, temperature, backend)
    if not return_matches:
        return out
    return out, _in_type_of(query, key, matches)


def _in_type_of(query: Tensor, key: Tensor, matches: Matches) -> Matches:
    """Scores in the type of query and key; those beyond float16 become its lowest number, for −∞ means no match."""
    index, score = matches
    dtype = torch.promote_types(query.dtype, key.dtype)
    if dtype == torch.float16:
        limit = torch.finfo(dtype).max
        score = score.clamp(-limit, limit).where(score.isfinite(), score)
    return Matches(index, score.to(dtype))


def _search(
    query: Tensor,
    key: Tensor,
    patch_size: int | Sequence[int],
    neighbors: int,
    iterations: int | None,
    similarity: Similarity,
    init: str | Matches | None,
    key_mask: Tensor | None,
    query_mask: Tensor | None,
    padding_mode: str,
    seed: int | None,
    backend: str | None,
) -> Matches:
    """:func:`patch_match` with the score in the type that was worked in."""
    sides = _check_maps(query, key, patch_size, neighbors, key_mask, query_mask, padding_mode)
    similarity = checks.check_similarity(similarity)
    check_seed(seed)
    backend = _check_backend(query, similarity, backend)
    if isinstance(init, tuple):
        init = checks.check_matches("init", init, query.shape)
        checks.check_device("init.index", init.index, query.device)
        kind, init_index = "matches", init.index
    else:
        default = "tree" if backend == "native" else "random"
        kind, init_index = default if init is None else init, None
        checks.check_word("init", kind, INITS, " or Matches")
        if kind == "tree" and backend != "native":
            raise ValueError(f"init='tree' needs the native backend, got backend={backend!r}")
    if iterations is None:
        iterations = DEFAULT_ITERATIONS[kind]
    checks.check_count("iterations", iterations, 0)
    working = _working_type(query, key)
    return Matches(
        *ops.search(
            query.to(working), key.to(working), key_mask, query_mask, kind, init_index, draw_seed(seed),
            sides, neighbors, iterations, similarity, padding_mode, backend,
        )
    )  # fmt: skip


def _check_matches(matches: Matches, value: Tensor) -> Matches:
    """Check matches that come from the caller, perhaps as a plain pair."""
    matches = checks.check_matches("matches", matches)
    checks.check_map("value", value)
    checks.check_same("matches.index", matches.index, "value", value, channels=False)
    checks.check_device("matches.score", matches.score, value.device)
    checks.check_index("matches.index", matches.index, value)
    return matches


def _gather(
    matches: Matches, value: Tensor, patch_size: int | Sequence[int] | None, temperature: float, backend: str | None
) -> Tensor:
    """:func:`aggregate` over the given patch, or :func:`attend` without one."""
    checks.check_temperature(temperature)
    backend = _check_backend(value, "l2", backend)
    working = _working_type(matches.score, value)
    score, values = matches.score.to(working), value.to(working)
    if patch_size is None:
        out = ops.attend(matches.index, score, values, float(temperature), backend)
    else:
        sides = checks.check_patch_size(patch_size, value.ndim - 2)
        out = ops.aggregate(matches.index, score, values, sides, float(temperature), backend)
    return out.to(value.dtype)


def _check_maps(
    query: Tensor,
    key: Tensor,
    patch_size: int | Sequence[int],
    neighbors: int,
    key_mask: Tensor | None,
    query_mask: Tensor | None,
    padding_mode: str,
) -> tuple[int, ...]:
    """Check what all searches have in common; returns the patch's sides."""
    checks.check_map("query", query)
    checks.check_map("key", key)
    checks.check_same("query", query, "key", key, channels=True)
    checks.check_word("padding_mode", padding_mode, PADDING_MODES)
    checks.check_mask("key_mask", key_mask, key)
    checks.check_mask("query_mask", query_mask, query)
    checks.check_count("neighbors", neighbors, 1)
    checks.check_enough_keys(neighbors, key, key_mask)
    return checks.check_patch_size(patch_size, query.ndim - 2)


def _check_backend(x: Tensor, similarity: Similarity, backend: str | None) -> str:
    if backend is not None:
        checks.check_word("backend", backend, BACKENDS)
    return ops.choose_backend(x, similarity, backend)


def _working_type(*maps: Tensor) -> torch.dtype:
    """float64 if one of the maps has it, float32 otherwise: half types are too coarse to compare patches in."""
    return torch.float64 if any(x.dtype == torch.float64 for x in maps) else torch.float32
