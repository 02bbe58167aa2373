"""Tolerances per type, for all tests."""

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor

# Error relative to the largest magnitude in the tensor; rounding errors of sums over a patch are well below.
RELATIVE = {
    torch.float64: 1e-12,
    torch.float32: 1e-5,
    torch.bfloat16: 1e-2,
    torch.float16: 2e-3,
}


def slack(expected: Tensor) -> float:
    """Return the allowed absolute error: a fraction of the largest finite magnitude in ``expected``."""
    magnitude = expected.detach().double().abs()
    finite = magnitude[magnitude.isfinite()]
    largest = finite.max().item() if finite.numel() else 0.0
    return RELATIVE[expected.dtype] * max(largest, torch.finfo(expected.dtype).tiny)


def assert_close(actual: Tensor, expected: Tensor) -> None:
    """Check for the same shape, type, NaN and infinities, and finite values within :func:`slack`."""
    torch.testing.assert_close(actual, expected, rtol=0, atol=slack(expected), equal_nan=True)


def assert_all_close(actual: Sequence[Tensor], expected: Sequence[Tensor], names: Sequence[str]) -> None:
    """:func:`assert_close` for several tensors; the message says which one failed."""
    for a, e, name in zip(actual, expected, names, strict=True):
        torch.testing.assert_close(a, e, rtol=0, atol=slack(e), equal_nan=True, msg=partial("{}: {}".format, name))


def assert_same_bits(actual: Tensor, expected: Tensor) -> None:
    """Check that all elements are equal; NaN equals NaN."""
    torch.testing.assert_close(actual, expected, rtol=0, atol=0, equal_nan=True)


def assert_not_worse(score: Tensor, before: Tensor) -> None:
    """Check that no score is lower than before by more than rounding."""
    loss = (before - score).nan_to_num(nan=0.0).max().item()
    assert loss <= slack(before), f"a score got worse by {loss}"
