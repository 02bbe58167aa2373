"""The ops behind psal's functions, and the choice of the backend that runs them.

These functions take checked arguments; the public ones are in :mod:`psal.functional`.
"""

from collections.abc import Sequence
from typing import Protocol

from torch import Tensor

from psal.matches import Matches
from psal.ops import flops as flops  # registers the FLOP formulas
from psal.ops import native, reference
from psal.ops.backends import TRITON_OBSTACLE, choose_backend
from psal.options import SearchOptions


class Backend(Protocol):
    """What a backend's module defines.

    All maps of one call have one floating-point type and device, except that a value may be of a half type.
    """

    def search(
        self, query: Tensor, key: Tensor, key_mask: Tensor | None, query_mask: Tensor | None, options: SearchOptions
    ) -> Matches:
        """Find each query's k best keys; the scores carry gradients to query and key.

        Args:
            query: ``(B, C, *Sq)``.
            key: ``(B, C, *Sk)``.
            key_mask: bool ``(B, 1, *Sk)``, True where a key is valid; None for all.
            query_mask: bool ``(B, 1, *Sq)``, True where a query takes part; None for all.
            options: of the search; ``options.backend`` has been dealt with.
        """

    def score(self, query: Tensor, key: Tensor, index: Tensor, options: SearchOptions) -> Tensor:
        """Score each query's patch against the key patches at ``index`` ``(B, m, *Sq)``; −∞ where it is −1."""

    def attend(self, matches: Matches, value: Tensor, temperature: float) -> Tensor:
        """Average the values ``(B, Cv, *Sk)`` at each query's matches, weighted by a softmax of the scores."""

    def aggregate(self, matches: Matches, value: Tensor, sides: Sequence[int], temperature: float) -> Tensor:
        """Do the same over the matches of all pixels in a patch window, each shifted back to its center."""


# "native" and "triton" are the same ops: the dispatcher takes the kernels of the tensors' device.
BACKENDS: dict[str, Backend] = {"native": native, "triton": native, "reference": reference}

if TRITON_OBSTACLE is None:
    from psal.ops.triton import register as register  # registers the kernels


def search(
    query: Tensor, key: Tensor, key_mask: Tensor | None, query_mask: Tensor | None, options: SearchOptions
) -> Matches:
    """Run :meth:`Backend.search`."""
    backend = choose_backend(query, options.similarity, options.backend, options.neighbors)
    return BACKENDS[backend].search(query, key, key_mask, query_mask, options)


def score(query: Tensor, key: Tensor, index: Tensor, options: SearchOptions) -> Tensor:
    """Run :meth:`Backend.score`."""
    backend = choose_backend(query, options.similarity, options.backend)
    return BACKENDS[backend].score(query, key, index, options)


def attend(matches: Matches, value: Tensor, temperature: float, backend: str | None = None) -> Tensor:
    """Run :meth:`Backend.attend`."""
    return BACKENDS[choose_backend(value, backend=backend)].attend(matches, value, temperature)


def aggregate(
    matches: Matches, value: Tensor, sides: Sequence[int], temperature: float, backend: str | None = None
) -> Tensor:
    """Run :meth:`Backend.aggregate`."""
    return BACKENDS[choose_backend(value, backend=backend)].aggregate(matches, value, sides, temperature)
