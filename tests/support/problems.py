"""Random searches for the property tests: any grids, strides, masks, inits and values; and what holds for them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from hypothesis import strategies as st
from torch import Tensor

import psal
from psal import ops
from psal.options import PADDING_MODES, SIMILARITIES, SearchOptions

FINITE = ("normal", "constant", "steps", "fine")
INTEGERS = ("constant", "steps")
ANY = ("normal", "constant", "steps", "fine", "special", "sprinkled")
SPECIAL = (math.nan, math.inf, -math.inf, 0.0, -0.0, 1e-42, -1e-310, 3e38, -3e38, 1e20, 1e308)


@dataclass
class Problem:
    """Maps and arguments of a search, and the value for the attention after it."""

    query: Tensor
    key: Tensor
    value: Tensor
    arguments: dict[str, Any] = field(default_factory=dict)

    @property
    def active(self) -> Tensor:
        """Bool ``(B, k, *Sq)``: which queries take part."""
        shape = (self.query.shape[0], self.arguments["neighbors"], *self.query.shape[2:])
        mask = self.arguments["query_mask"]
        return torch.ones(shape, dtype=torch.bool) if mask is None else mask.expand(shape)


@st.composite
def problems(draw: st.DrawFn, values: Sequence[str] = ANY, similarities: Sequence[str] = SIMILARITIES) -> Problem:
    """Draw a search on small maps.

    Values of kind ANY may be NaN, infinite, denormal or huge; sums of INTEGERS are exact.
    """
    dimensions = draw(st.integers(1, 3))
    longest_side = {1: 40, 2: 9, 3: 5}[dimensions]
    grid = st.tuples(*[st.integers(1, longest_side)] * dimensions)
    sq, sk = draw(grid), draw(grid)
    channel_counts = st.one_of(st.integers(1, 5), st.sampled_from([16, 17, 33]))  # whole registers, and more
    batch, channels = draw(st.integers(1, 2)), draw(channel_counts)
    dtype = draw(st.sampled_from([torch.float32, torch.float64, torch.bfloat16, torch.float16]))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**32)))

    def a_map(channels: int, size: tuple[int, ...]) -> Tensor:
        shape = (batch, channels, *size)
        kind = draw(st.sampled_from(values))
        x = torch.randn(shape, generator=generator, dtype=torch.float64)
        if kind == "constant":
            x = torch.full(shape, draw(st.sampled_from((0.0, 1.0, -3.0))), dtype=torch.float64)
        elif kind == "steps":
            x = x.round()
        elif kind == "fine":  # little contrast, and an offset
            x = 1e-3 * x + draw(st.sampled_from((0.0, 1.0, 30.0) if dtype == torch.float16 else (0.0, 1.0, 1000.0)))
        elif kind in ("special", "sprinkled"):
            special = torch.tensor(SPECIAL, dtype=torch.float64)
            chosen = special[torch.randint(len(SPECIAL), shape, generator=generator)]
            share = 1.0 if kind == "special" else 0.1
            x = chosen.where(torch.rand(shape, generator=generator) < share, x)
        return restrided(draw, x.to(dtype))

    def a_mask(size: tuple[int, ...], share: float) -> Tensor | None:
        if draw(st.booleans()):
            return None
        return restrided(draw, torch.rand((batch, 1, *size), generator=generator) < share)

    key_mask, query_mask = a_mask(sk, 0.6), a_mask(sq, 0.5)
    if key_mask is not None:
        key_mask.select(-1, 0)[:] = True
    left = math.prod(sk) if key_mask is None else int(key_mask.flatten(1).sum(1).min())
    init: str | psal.Matches = draw(st.sampled_from(["tree", "random", "matches"]))
    if init == "matches":
        shape = (batch, draw(st.integers(1, 4)), *sq)
        index = torch.randint(-3, math.prod(sk) + 3, shape, generator=generator)
        init = psal.Matches(restrided(draw, index), torch.randn(shape, generator=generator))
    return Problem(
        a_map(channels, sq),
        a_map(channels, sk),
        a_map(draw(channel_counts), sk),
        {
            "patch_size": draw(st.tuples(*[st.sampled_from([1, 3, 5, 7])] * dimensions)),
            "neighbors": draw(st.integers(1, min(left, 33))),
            "iterations": draw(st.integers(0, 2)),
            "similarity": draw(st.sampled_from(similarities)),
            "padding_mode": draw(st.sampled_from(PADDING_MODES)),
            "init": init,
            "key_mask": key_mask,
            "query_mask": query_mask,
            "seed": draw(st.integers(-(2**63), 2**63 - 1)),
        },
    )


def restrided(draw: st.DrawFn, x: Tensor) -> Tensor:
    """Return the same tensor with other strides."""
    kind = draw(st.sampled_from(["contiguous", "reversed", "channels_last", "every_second"]))
    if kind == "reversed":
        return x.permute(*reversed(range(x.ndim))).contiguous().permute(*reversed(range(x.ndim)))
    if kind == "channels_last":
        return x.movedim(1, -1).contiguous().movedim(-1, 1)
    if kind == "every_second":
        return x.repeat_interleave(2, -1)[..., ::2]
    return x


def search(problem: Problem, **arguments: Any) -> psal.Matches:
    return psal.patch_match(problem.query, problem.key, **{**problem.arguments, **arguments})


def rescored(problem: Problem, index: Tensor, backend: str) -> Tensor:
    """Scores of the given matches, recomputed; finite ones stay finite in half types."""
    dtype = problem.query.dtype
    working = torch.float64 if dtype == torch.float64 else torch.float32
    options = SearchOptions(**{name: problem.arguments[name] for name in ("patch_size", "similarity", "padding_mode")})
    options = replace(options, backend=backend)
    score = ops.score(problem.query.to(working), problem.key.to(working), index, options)
    limit = torch.finfo(dtype).max
    return score.clamp(-limit, limit).where(score.isfinite(), score).to(dtype)


def assert_valid(problem: Problem, matches: psal.Matches) -> None:
    """Check that indices are in range, all different and valid keys; −1 and −∞ for masked queries."""
    index, active = matches.index, problem.active
    keys = math.prod(problem.key.shape[2:])
    assert index.shape == matches.score.shape == active.shape
    assert ((index >= 0) & (index < keys))[active].all(), "an index is out of range"
    assert (index[~active] == -1).all(), "a masked query has a match"
    assert (matches.score[~active] == -math.inf).all(), "a masked query has a score"
    ordered = index.sort(1).values
    assert (ordered[:, 1:] != ordered[:, :-1])[active[:, 1:]].all(), "a key is matched twice"
    mask = problem.arguments["key_mask"]
    if mask is not None:
        allowed = mask.flatten(1).gather(1, index.flatten(1).clamp_min(0)).reshape(index.shape)
        assert allowed[active].all(), "a masked key is matched"
