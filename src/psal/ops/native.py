"""The backends "native" and "triton": calls of the compiled ops, whose kernels the dispatcher chooses by device."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

from psal.matches import Matches
from psal.ops.registration import Attend, Score, Search, run
from psal.options import INITS, PADDING_MODES, SIMILARITIES, SearchOptions
from psal.seeds import draw_seed

# Positions in these tuples and in those of psal.options are the ops' codes, as in csrc/kernels/arguments.h.
INIT_KINDS = (*INITS, "matches")
SIMD_PATHS = ("baseline", "x86-64-v3", "x86-64-v4")  # as in csrc/simd/dispatch.h
_BEST_PATH: int = torch.ops.psal.simd_path()  # read before `simd_path` changes it


def search(
    query: Tensor, key: Tensor, key_mask: Tensor | None, query_mask: Tensor | None, options: SearchOptions
) -> Matches:
    """Find each query's k best keys; see :class:`psal.ops.Backend`."""
    assert isinstance(options.similarity, str)
    start = options.start(default_init="tree")
    index, score = run(
        torch.ops.psal.search, Search,
        query, key, key_mask, query_mask, start.index, draw_seed(options.seed),
        options.sides(query.ndim - 2), options.neighbors, start.iterations,
        SIMILARITIES.index(options.similarity), INIT_KINDS.index(start.init), PADDING_MODES.index(options.padding_mode),
    )  # fmt: skip
    return Matches(index, score)


def score(query: Tensor, key: Tensor, index: Tensor, options: SearchOptions) -> Tensor:
    """Score each query's patch against the key patches at ``index``."""
    assert isinstance(options.similarity, str)
    out: Tensor = run(
        torch.ops.psal.score, Score,
        query, key, index, options.sides(query.ndim - 2),
        SIMILARITIES.index(options.similarity), PADDING_MODES.index(options.padding_mode),
    )  # fmt: skip
    return out


def attend(matches: Matches, value: Tensor, temperature: float) -> Tensor:
    """Average the values at each query's matches, weighted by a softmax of the scores."""
    return aggregate(matches, value, (1,) * (value.ndim - 2), temperature)


def aggregate(matches: Matches, value: Tensor, sides: Sequence[int], temperature: float) -> Tensor:
    """Average the values at the matches of all pixels in a patch window, each shifted back to the center."""
    out: Tensor = run(torch.ops.psal.attend, Attend, matches.index, matches.score, value, sides, temperature)[0]
    return out


def simd_paths() -> tuple[str, ...]:
    """Return the instruction sets that this machine supports, best last."""
    return SIMD_PATHS[: _BEST_PATH + 1]


@contextmanager
def simd_path(name: str) -> Iterator[None]:
    """Run the kernels with the given instruction set inside a ``with`` block, for comparisons."""
    before = torch.ops.psal.set_simd_path(SIMD_PATHS.index(name))
    try:
        yield
    finally:
        torch.ops.psal.set_simd_path(before)
