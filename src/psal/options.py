"""Options of a search: the words they take, their defaults and their checks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypedDict

from torch import Tensor

from psal.checks import check_count, check_patch_size, check_word, patch_sides
from psal.matches import Matches
from psal.seeds import check_seed

Similarity = str | Callable[[Tensor, Tensor], Tensor]

SIMILARITIES = ("l2", "dot", "cosine")
PADDING_MODES = ("replicate", "reflect", "zeros")
INITS = ("random", "tree")
BACKENDS = ("native", "triton", "reference")  # in the order in which they are preferred

# Defaults of `iterations`. "matches" stands for a warm start from earlier Matches.
DEFAULT_ITERATIONS = {"random": 5, "tree": 1, "matches": 1}


@dataclass(frozen=True)
class Start:
    """Where a search starts and how long it runs: ``init`` and ``iterations`` with the backend's defaults filled in.

    Attributes:
        init: "random", "tree" or "matches".
        index: int64 ``(B, m, *Sq)``, the earlier matches if ``init`` is "matches", else None.
        iterations: rounds of propagation and random search.
    """

    init: str
    index: Tensor | None
    iterations: int


@dataclass(frozen=True)
class SearchOptions:
    """Options of :func:`psal.patch_match`; all that does not depend on the maps is checked here.

    Attributes:
        patch_size: odd side of the compared patches, an int or one int per spatial dimension.
        neighbors: k, the number of matches per query.
        iterations: rounds of propagation and random search; None takes the default of ``init``.
        similarity: "l2" (negative squared distance), "dot", "cosine", or a callable
            ``(query_patches, key_patches) -> scores`` on ``(..., d)`` tensors.
        init: "tree", "random", or earlier :class:`Matches` as a warm start; None takes the backend's default.
        padding_mode: values of a map beyond its border: "replicate", "reflect" or "zeros".
        seed: seed of the random numbers; None draws one from torch's generator in each call.
        backend: "native", "triton", "reference", or None for the fastest that can run the search.

    Raises:
        ValueError, TypeError: if an option is not as described.

    >>> SearchOptions(patch_size=[3, 5]).patch_size
    (3, 5)
    """

    patch_size: int | Sequence[int] = 7
    neighbors: int = 3
    iterations: int | None = None
    similarity: Similarity = "l2"
    init: str | Matches | None = None
    padding_mode: str = "replicate"
    seed: int | None = None
    backend: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "patch_size", check_patch_size(self.patch_size))
        object.__setattr__(self, "neighbors", check_count("neighbors", self.neighbors, 1))
        if self.iterations is not None:
            object.__setattr__(self, "iterations", check_count("iterations", self.iterations, 0))
        if not callable(self.similarity):
            check_word("similarity", self.similarity, SIMILARITIES, " or a function of two patch tensors")
        if self.init is not None and not isinstance(self.init, tuple):
            check_word("init", self.init, INITS, " or Matches")
        check_word("padding_mode", self.padding_mode, PADDING_MODES)
        check_seed(self.seed)
        if self.backend is not None:
            check_word("backend", self.backend, BACKENDS)

    def sides(self, dimensions: int) -> tuple[int, ...]:
        """Return the patch's side along each of ``dimensions`` spatial axes.

        Raises:
            ValueError: if ``patch_size`` has another number of sides.
        """
        return patch_sides(self.patch_size, dimensions)

    def start(self, default_init: str) -> Start:
        """Fill in the defaults of ``init`` and ``iterations`` for a backend that starts with ``default_init``."""
        if isinstance(self.init, tuple):
            init, index = "matches", self.init[0]
        else:
            init, index = self.init or default_init, None
        iterations = DEFAULT_ITERATIONS[init] if self.iterations is None else self.iterations
        return Start(init, index, iterations)


class SearchKeywords(TypedDict, total=False):
    """Keywords of :func:`psal.patch_match`, for type checkers: the options and the masks."""

    patch_size: int | Sequence[int]
    neighbors: int
    iterations: int | None
    similarity: Similarity
    init: str | Matches | None
    key_mask: Tensor | None
    query_mask: Tensor | None
    padding_mode: str
    seed: int | None
    backend: str | None
