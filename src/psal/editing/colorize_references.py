"""One or several color references as one map of keys."""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

GAP = 5  # pixels around each of several references: patches of 11 pixels see the same as at the border of a single one
DISTANCE = 2.0  # between the positions of two references, where 1 is the height of one


class Reference(NamedTuple):
    """One reference at one size."""

    luma: Tensor  # [1, h, w]
    chroma: Tensor  # [2, h, w]


def stack(maps: list[Tensor]) -> Tensor:
    """Lay the maps ``[C, h, w]`` of several references one below the other, continued beyond their borders.

    A single map is returned as it is.
    """
    if len(maps) == 1:
        return maps[0]
    width = max(x.shape[2] for x in maps)
    padded = [F.pad(x[None], (GAP, GAP + width - x.shape[2], GAP, GAP), mode="replicate")[0] for x in maps]
    return torch.cat(padded, dim=1)


def valid_keys(references: list[Reference]) -> Tensor | None:
    """Mark the pixels of a stack that are a reference's own, bool ``(1, 1, h, w)``; None if all are."""
    if len(references) == 1:
        return None
    width = max(reference.luma.shape[2] for reference in references)
    own = [torch.ones_like(reference.luma, dtype=torch.bool) for reference in references]
    padded = [F.pad(x, (GAP, GAP + width - x.shape[2], GAP, GAP)) for x in own]
    return torch.cat(padded, dim=1)[None]


def count_keys(references: list[Reference]) -> int:
    """Count the pixels of all references."""
    return sum(reference.luma.numel() for reference in references)


def grid(x: Tensor) -> Tensor:
    """Row and column of each pixel of a map, 0..1 from border to border, ``[2, H, W]``."""
    rows, columns = ((torch.arange(size, device=x.device) + 0.5) / size for size in x.shape[1:])
    return torch.stack(torch.meshgrid(rows, columns, indexing="ij"))


def places(references: list[Reference]) -> list[Tensor]:
    """Positions ``[2, h, w]`` that tell the references apart: as :func:`grid`, but each further down."""
    found = [grid(reference.luma) for reference in references]
    for number, place in enumerate(found):
        place[0] += DISTANCE * number
    return found
