"""The floating-point type that maps are computed in."""

import torch
from torch import Tensor


def working_type(*maps: Tensor) -> torch.dtype:
    """Return float64 if one of the maps has it, else float32: half types are too coarse to compare patches in."""
    return torch.float64 if any(x.dtype == torch.float64 for x in maps) else torch.float32
