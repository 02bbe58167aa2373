"""Inputs of the baselines, and attention with the matrix of all scores."""

import torch
from torch import Tensor

from support.maps import normal_map

NAMES = ("output", "query", "key", "value")  # what `gradients` of a layer returns


def problem(
    batch: int = 2, channels: int = 2, dtype: torch.dtype = torch.float64, scale: float = 1.0
) -> tuple[Tensor, Tensor, Tensor]:
    """Query 9 × 13, key and value 11 × 7; the value has three channels."""
    query = normal_map(batch, channels, 9, 13, dtype=dtype, seed=1) * scale
    key = normal_map(batch, channels, 11, 7, dtype=dtype, seed=2) * scale
    return query, key, normal_map(batch, 3, 11, 7, dtype=dtype, seed=3)


def softmax_attention(scores: Tensor, value: Tensor, grid: tuple[int, int]) -> Tensor:
    """Attention with a matrix of scores ``(B, N, M)``: ``(B, Cv, *grid)``."""
    rows = torch.softmax(scores, -1) @ value.flatten(2).mT
    return rows.mT.reshape(*value.shape[:2], *grid)
