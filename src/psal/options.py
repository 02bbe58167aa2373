"""The words that the options of a search take."""

from collections.abc import Callable

from torch import Tensor

Similarity = str | Callable[[Tensor, Tensor], Tensor]

# Positions in the first three tuples are the codes that the compiled ops take.
SIMILARITIES = ("l2", "dot", "cosine")
PADDING_MODES = ("replicate", "reflect", "zeros")
INITS = ("random", "tree")
BACKENDS = ("native", "reference")
