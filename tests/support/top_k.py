"""Top-k attention with the matrix of all scores: what the adapters approximate."""

import torch
from torch import Tensor

# Up to some hundred tokens, so many rounds of the search found every query's exact top-k in all trials.
EXACT_IN_PRACTICE = {"iterations": 20, "seed": 0}


def top_k_attention(query: Tensor, key: Tensor, value: Tensor, k: int, scale: float, prefix: int = 0) -> Tensor:
    """Attend from tokens ``(B, heads, N, D)`` to the best k keys that are not a prefix, and to all that are.

    Queries of the prefix attend to all keys.
    """
    score = query @ key.mT * scale  # [B, heads, N, N]
    best = score[..., prefix:].topk(k, dim=3).indices + prefix
    kept = torch.zeros_like(score, dtype=torch.bool).scatter(3, best, True)
    kept[..., :prefix] = True
    kept[..., :prefix, :] = True
    return score.masked_fill(~kept, -torch.inf).softmax(3) @ value
