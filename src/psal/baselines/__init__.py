"""The attention layers that psal is compared with: ``layer(query, key, value)`` on ``(B, C, H, W)`` maps."""

from psal.baselines.full import FullAttention
from psal.baselines.linear import LinearAttention
from psal.baselines.local import LocalAttention
from psal.baselines.performer import PerformerAttention
from psal.baselines.reformer import ReformerAttention

__all__ = ["FullAttention", "LinearAttention", "LocalAttention", "PerformerAttention", "ReformerAttention"]
