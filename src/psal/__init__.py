"""Patch-based stochastic attention: every pixel attends to a whole picture, in linear time and memory."""

from psal.functional import aggregate, attend, exact_match, patch_attention, patch_match
from psal.layers import PatchAttention, PatchAttentionBlock
from psal.matches import Matches, MatchQuality, match_quality
from psal.version import __version__

__all__ = [
    "MatchQuality",
    "Matches",
    "PatchAttention",
    "PatchAttentionBlock",
    "__version__",
    "aggregate",
    "attend",
    "exact_match",
    "match_quality",
    "patch_attention",
    "patch_match",
]
