"""Inputs of the tests: maps, masks and matches that depend on a seed alone."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

import psal


def normal_map(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> Tensor:
    """Standard normal values, drawn in float64 so that all types get the same map."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)


def integer_map(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> Tensor:
    """Integers from −4 to 4: sums of products are exact in any order, and ties are frequent."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(-4, 5, shape, generator=generator).to(dtype)


def random_mask(batch: int, size: Sequence[int], *, fraction: float = 0.7, seed: int = 0) -> Tensor:
    """Bool ``(B, 1, *S)``, True at about a ``fraction`` of the pixels and at the last one of each batch element."""
    generator = torch.Generator().manual_seed(seed)
    mask = torch.rand((batch, 1, *size), generator=generator) < fraction
    mask.view(batch, -1)[:, -1] = True
    return mask


def random_matches(
    batch: int,
    neighbors: int,
    sq: Sequence[int],
    sk: Sequence[int],
    *,
    dtype: torch.dtype = torch.float64,
    seed: int = 0,
) -> psal.Matches:
    """Random matches: k different indices per query, one from each of k strata, and sorted normal scores."""
    generator = torch.Generator().manual_seed(seed)
    keys = math.prod(sk)
    stratum = keys // neighbors
    start = torch.randint(keys, (batch, 1, *sq), generator=generator)
    within = torch.randint(stratum, (batch, neighbors, *sq), generator=generator)
    first = (torch.arange(neighbors) * stratum).reshape(-1, *[1] * len(sq))
    score = torch.randn((batch, neighbors, *sq), generator=generator, dtype=torch.float64)
    return psal.Matches((start + first + within) % keys, score.sort(1, descending=True).values.to(dtype))


def gradients(function: Callable[..., Any], *inputs: Tensor, seed: int = 9) -> tuple[Tensor, ...]:
    """Output of ``function`` and its gradients with respect to all inputs, for a random cotangent."""
    leaves = [x.detach().clone(memory_format=torch.preserve_format).requires_grad_() for x in inputs]
    out = function(*leaves)
    cotangent = normal_map(*out.shape, dtype=out.dtype, seed=seed)
    return out.detach(), *torch.autograd.grad(out, leaves, cotangent)


def dense_patches(x: Tensor, patch_size: int) -> Tensor:
    """Patches ``(B, N, d)`` of an image ``(B, C, H, W)``, by torch's own pad and unfold."""
    padded = torch.nn.functional.pad(x, [patch_size // 2] * 4, mode="replicate")
    return torch.nn.functional.unfold(padded, patch_size).mT


def dense_scores(query: Tensor, key: Tensor, patch_size: int, similarity: str) -> Tensor:
    """Scores ``(B, N, M)`` of all pairs of patches of two images."""
    q, k = dense_patches(query, patch_size), dense_patches(key, patch_size)
    if similarity == "l2":
        return -(q[:, :, None] - k[:, None]).square().sum(-1)
    if similarity == "cosine":
        q, k = (torch.nn.functional.normalize(x, dim=-1, eps=1e-8) for x in (q, k))
    return q @ k.mT
