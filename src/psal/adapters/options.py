"""Options that all adapters take, checked once."""

from dataclasses import dataclass
from typing import Any

from psal.checks import check_count, check_word
from psal.options import INITS, SearchOptions

NEIGHBORS = 16
MIN_TOKENS = 1024  # a round number: where patch attention begins to pay depends on the machine


@dataclass(frozen=True)
class AdapterOptions:
    """How an adapter searches, and when.

    Attributes:
        neighbors: keys per token.
        min_tokens: with fewer tokens than this, or than ``neighbors``, the library's own attention is used.
        iterations, init, seed, backend: as in :func:`psal.patch_match`; ``init`` is a word.

    Raises:
        ValueError, TypeError: if an option is not as described.
    """

    neighbors: int = NEIGHBORS
    min_tokens: int = MIN_TOKENS
    iterations: int | None = None
    init: str | None = None
    seed: int | None = None
    backend: str | None = None

    def __post_init__(self) -> None:
        check_count("min_tokens", self.min_tokens, 0)
        if self.init is not None:
            check_word("init", self.init, INITS)
        SearchOptions(patch_size=1, similarity="dot", **self.search())  # checks the others

    def search(self) -> dict[str, Any]:
        """Return the keywords of :func:`psal.token_attention`."""
        names = ("neighbors", "iterations", "init", "seed", "backend")
        return {name: getattr(self, name) for name in names}

    def takes(self, tokens: int) -> bool:
        """Return whether patch attention is used for a number of tokens."""
        return tokens >= max(self.min_tokens, self.neighbors)
