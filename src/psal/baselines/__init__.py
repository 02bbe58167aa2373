"""The attention layers that psal is compared with, all called as ``layer(query, key, value)`` on ``(B, C, H, W)``."""

from psal.baselines.full import FullAttention
from psal.baselines.linear import LinearAttention
from psal.baselines.local import LocalAttention
from psal.baselines.performer import PerformerAttention
from psal.baselines.reformer import ReformerAttention

__all__ = ["FullAttention", "LinearAttention", "LocalAttention", "PerformerAttention", "ReformerAttention"]
