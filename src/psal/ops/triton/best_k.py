"""Device functions: a query's K best keys, as two tuples of K tensors with one element per lane, best first."""

import triton
import triton.language as tl


@triton.jit
def empty(like, K: tl.constexpr, TYPE: tl.constexpr):
    """Return K matches that are missing: index −1, score −∞."""
    index, best = (), ()
    for _ in tl.static_range(K):
        index = index + (tl.zeros_like(like) - 1,)
        best = best + (tl.full(like.shape, -float("inf"), TYPE),)
    return index, best


@triton.jit
def load(index, best, at, stride, K: tl.constexpr):
    """Read matches; those of a lane lie ``stride`` apart, from ``at`` on."""
    found_index, found_best = (), ()
    for i in tl.static_range(K):
        found_index = found_index + (tl.load(index + at + i * stride),)
        found_best = found_best + (tl.load(best + at + i * stride),)
    return found_index, found_best


@triton.jit
def store(index, best, at, stride, found_index, found_best, mask, K: tl.constexpr):
    """Write matches where ``mask`` says so; the inverse of :func:`load`."""
    for i in tl.static_range(K):
        tl.store(index + at + i * stride, found_index[i], mask=mask)
        tl.store(best + at + i * stride, found_best[i], mask=mask)


@triton.jit
def contains(index, candidate, K: tl.constexpr):
    """Return where a candidate is one of the matches."""
    there = index[0] == candidate
    for i in tl.static_range(1, K):
        there = there | (index[i] == candidate)
    return there


@triton.jit
def push(index, best, candidate, score, filled, K: tl.constexpr):
    """Insert a candidate where it beats a match; a tie stays behind the matches that are there.

    Only the first ``filled`` matches are compared with; the others are empty and give way to any score, −∞ too.
    """
    new_index, new_best = (), ()
    for i in tl.static_range(K):
        better = (score > best[i]) | (filled <= i)
        moved_index, moved_best = candidate, score
        if i > 0:  # sorted: where the candidate beats match i − 1, that one moves here
            above = (score > best[i - 1]) | (filled <= i - 1)
            moved_index = tl.where(above, index[i - 1], candidate)
            moved_best = tl.where(above, best[i - 1], score)
        new_index = new_index + (tl.where(better, moved_index, index[i]),)
        new_best = new_best + (tl.where(better, moved_best, best[i]),)
    return new_index, new_best
