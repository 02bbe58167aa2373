"""The ops behind psal's functions, and which backend runs them.

Every function here takes checked arguments; the public ones are in :mod:`psal.functional`.
"""

from collections.abc import Sequence

from torch import Tensor

from psal.ops import flops as flops  # registers the formulas
from psal.ops import native, reference
from psal.ops.reference import Similarity


def choose_backend(x: Tensor, similarity: Similarity = "l2", backend: str | None = None) -> str:
    """The native kernel where it can run, the reference elsewhere.

    Raises:
        ValueError: if "native" was asked for and can't run.
    """
    able = not callable(similarity) and x.device.type == "cpu"
    if backend is None:
        return "native" if able else "reference"
    if backend == "native" and not able:
        reason = "a callable similarity" if callable(similarity) else f"tensors on {x.device}"
        raise ValueError(f"backend='native' cannot run {reason}: use backend='reference' or None")
    return backend


def search(
    query: Tensor,
    key: Tensor,
    key_mask: Tensor | None,
    query_mask: Tensor | None,
    init: str,
    init_index: Tensor | None,
    seed: Tensor,
    patch_size: Sequence[int],
    neighbors: int,
    iterations: int,
    similarity: Similarity,
    padding_mode: str,
    backend: str,
) -> tuple[Tensor, Tensor]:
    """Index and score of the k best keys; the score carries gradients."""
    if backend == "native":
        assert isinstance(similarity, str)
        return native.search(
            query, key, key_mask, query_mask, init_index, seed,
            patch_size, neighbors, iterations, similarity, init, padding_mode,
        )  # fmt: skip
    index = reference.search(
        query, key, key_mask, query_mask, init_index, seed.to(query.device),
        patch_size, neighbors, iterations, similarity, padding_mode,
    )  # fmt: skip
    return index, reference.score(query, key, index, patch_size, similarity, padding_mode)


def score(
    query: Tensor,
    key: Tensor,
    index: Tensor,
    patch_size: Sequence[int],
    similarity: Similarity,
    padding_mode: str,
    backend: str,
) -> Tensor:
    """Score of each query's patch with the key patches at ``index``."""
    if backend == "native":
        assert isinstance(similarity, str)
        return native.score(query, key, index, patch_size, similarity, padding_mode)
    return reference.score(query, key, index, patch_size, similarity, padding_mode)


def attend(index: Tensor, score: Tensor, value: Tensor, temperature: float, backend: str) -> Tensor:
    """Softmax over the neighbours, times their values."""
    run = native.attend if backend == "native" else reference.attend
    return run(index, score, value, temperature)


def aggregate(
    index: Tensor, score: Tensor, value: Tensor, patch_size: Sequence[int], temperature: float, backend: str
) -> Tensor:
    """The same over the neighbours of all pixels of a patch, shifted back."""
    run = native.aggregate if backend == "native" else reference.aggregate
    return run(index, score, value, patch_size, temperature)
