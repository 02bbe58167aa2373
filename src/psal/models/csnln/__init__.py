"""Super-resolution with cross-scale attention, exact or through PatchMatch."""

from psal.models.csnln.cross_scale import (
    PatchCrossScaleAttention,
    RandomCrossScaleAttention,
    WindowCrossScaleAttention,
)
from psal.models.csnln.exact import CrossScaleAttention
from psal.models.csnln.network import CSNLN

__all__ = [
    "CSNLN",
    "CrossScaleAttention",
    "PatchCrossScaleAttention",
    "RandomCrossScaleAttention",
    "WindowCrossScaleAttention",
]
