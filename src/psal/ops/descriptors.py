"""Descriptors: a patch in 16 components, so that patches can be sorted. The plain-torch twin of descriptor-inl.h.

    patch [C, *sides]  →  principal channels  →  lowest DCT frequencies over the patch  →  16 principal components

Every step projects on orthonormal vectors, so distances of descriptors are close to, and never above, those of patches.
Nothing here waits for the device: eigenvectors come from orthogonal iteration, as torch's solvers check for errors.
"""

import math
from collections.abc import Sequence
from itertools import product

import torch
from torch import Tensor

from psal.ops import grid
from psal.options import SearchOptions

COMPONENTS = 16
MAX_ORDER = (9, 3, 2)  # highest total order of the frequencies, by number of patch axes longer than one pixel
MIN_CHANNELS = 4  # principal channels that are kept, unless the map has fewer
SAMPLES = 4096  # pixels and patches from which principal directions are computed
ITERATIONS = 12  # of the orthogonal iteration


def describe(query: Tensor, key: Tensor, options: SearchOptions) -> tuple[Tensor, Tensor]:
    """Describe all patches: ``(B, N, 16)`` and ``(B, M, 16)``, float32 and finite.

    The closer two descriptors, the better the score by ``options.similarity``.
    """
    similarity, sides = options.similarity, options.sides(query.ndim - 2)
    centered = similarity == "l2"
    shape = (*key.shape[:2], *[1] * (key.ndim - 2))
    center = _finite(key.flatten(2).double().mean(2) if key.dtype == torch.float64 else key.flatten(2).float().mean(2))
    center = center.reshape(shape) if centered else torch.zeros_like(center).reshape(shape)
    frequencies = dct_frequencies(sides)
    kept = min(key.shape[1], max(MIN_CHANNELS, -(-COMPONENTS // len(frequencies))))
    padded = [_finite((grid.pad(x, sides, options.padding_mode) - center).float()) for x in (query, key)]
    pixels = _samples(padded[1].flatten(2).mT)  # [B, samples, C]
    channels = principal_directions(pixels, kept, centered)  # [B, C, kept]
    factors = _factors(padded, sides, similarity)
    described = []
    for x, factor in zip(padded, factors, strict=True):
        projected = (channels.mT @ x.flatten(2)).reshape(x.shape[0], kept, *x.shape[2:])
        coefficients = dct(projected, sides, frequencies).flatten(3).flatten(1, 2).mT  # [B, pixels, kept · frequencies]
        described.append(_finite(coefficients * factor[..., None]))
    count = COMPONENTS - (similarity == "dot")
    components = principal_directions(_samples(described[1]), min(count, described[1].shape[2]), centered)
    result = [torch.nn.functional.pad(x @ components, (0, COMPONENTS - components.shape[2])) for x in described]
    if similarity == "dot":
        result[1][..., -1] = _missing_norm(padded[1], sides)
    return result[0], result[1]


def _factors(padded: Sequence[Tensor], sides: Sequence[int], similarity: object) -> list[Tensor]:
    """Return each patch's factor, ``(B, pixels)``: "cosine" normalizes, "dot" scales queries to the longest key."""
    norms = [_finite(grid.inverse_norms(x, sides).flatten(1)) for x in padded]
    if similarity == "cosine":
        return norms
    ones = [torch.ones_like(norm) for norm in norms]
    if similarity == "dot":
        longest = _finite(1 / norms[1]).amax(1, keepdim=True)
        return [_finite(norms[0] * longest), ones[1]]
    return ones


def _missing_norm(padded: Tensor, sides: Sequence[int]) -> Tensor:
    """Return the component that puts all keys on one sphere, where the largest product is the smallest distance."""
    norm = _finite(1 / grid.inverse_norms(padded, sides).flatten(1))  # [B, M]
    return (norm.amax(1, keepdim=True).square() - norm.square()).clamp_min(0).sqrt()


def principal_directions(samples: Tensor, count: int, centered: bool) -> Tensor:
    """Return the orthonormal directions of largest variance of ``(B, samples, size)``: ``(B, size, count)``."""
    if centered:
        samples = samples - samples.mean(1, keepdim=True)
    size = samples.shape[2]
    moments = samples.mT @ samples / samples.shape[1]
    # A little of the identity keeps directions without variance apart from rounding errors.
    scale = moments.diagonal(dim1=1, dim2=2).sum(1).clamp_min(torch.finfo(moments.dtype).tiny)[:, None, None]
    moments = moments / scale + 1e-6 * torch.eye(size, device=samples.device)
    axis = torch.arange(1, size + 1, device=samples.device, dtype=samples.dtype)
    basis = (axis[:, None] * axis[None, :count]).cos().expand(samples.shape[0], -1, -1)  # in general position
    for _ in range(ITERATIONS):
        basis = torch.linalg.qr(moments @ basis).Q
    return basis


def dct_frequencies(sides: Sequence[int]) -> list[tuple[int, ...]]:
    """Return the lowest frequencies of a patch, one number per axis."""
    order = MAX_ORDER[max(sum(side > 1 for side in sides), 1) - 1]
    return [
        frequency for frequency in product(*(range(min(side, order + 1)) for side in sides)) if sum(frequency) <= order
    ]


def dct(x: Tensor, sides: Sequence[int], frequencies: Sequence[tuple[int, ...]]) -> Tensor:
    """Return the orthonormal DCT-II of every patch of ``(B, C, *(S + sides − 1))``: ``(B, C, frequencies, *S)``.

    Separable, and a sum of slices: convolution libraries choose their order of summation at run time.
    """
    filtered: dict[tuple[int, ...], Tensor] = {(): x}  # by the frequencies along the axes so far, the last one first
    for axis in reversed(range(len(sides))):
        needed = sorted({frequency[axis:] for frequency in frequencies})
        filtered = {tail: _filter(filtered[tail[1:]], axis + 2, sides[axis], tail[0]) for tail in needed}
    return torch.stack([filtered[frequency] for frequency in frequencies], 2)


def _filter(x: Tensor, axis: int, side: int, frequency: int) -> Tensor:
    """Sum ``side`` neighbors along an axis with the weights of one frequency."""
    size = x.shape[axis] - side + 1
    norm = math.sqrt((2 if frequency else 1) / side)
    weights = [norm * math.cos(math.pi * (2 * t + 1) * frequency / (2 * side)) for t in range(side)]
    total = x.narrow(axis, 0, size) * weights[0]
    for start in range(1, side):
        total.add_(x.narrow(axis, start, size), alpha=weights[start])
    return total


def _samples(x: Tensor) -> Tensor:
    """Return evenly spaced rows of ``(B, rows, size)``, at most :data:`SAMPLES`."""
    rows = x.shape[1]
    count = min(rows, SAMPLES)
    return x.index_select(1, torch.arange(count, device=x.device) * rows // count)


def _finite(x: Tensor) -> Tensor:
    """Replace NaN and infinity by 0."""
    return x.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0)
