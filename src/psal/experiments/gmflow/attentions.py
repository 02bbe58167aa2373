"""Attention layers that are put into GMFlow: scaled dot products of single pixels, on maps."""

import re

from torch import Tensor, nn

import psal
from psal.baselines import FullAttention
from psal.layers import AttentionLayer
from psal.models import attentions

CHANNELS = 128  # of GMFlow's features
EXACT = re.compile(r"exact([1-9]\d*)")
SEED = 0


class ExactAttention(AttentionLayer):
    """Attention to the k best keys of all: what PSAL approximates.

    The matrix of all pairs is computed in chunks and not stored.

    Args:
        neighbors: k.
        temperature: softmax temperature.
    """

    def __init__(self, neighbors: int, temperature: float) -> None:
        super().__init__()
        self.neighbors, self.temperature = neighbors, temperature

    def forward(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """Attend: query ``(B, C, *Sq)``, key ``(B, C, *Sk)``, value ``(B, Cv, *Sk)`` to ``(B, Cv, *Sq)``."""
        matches = psal.exact_match(query, key, patch_size=1, neighbors=self.neighbors, similarity="dot")
        return psal.attend(matches, value, temperature=self.temperature)


def build(name: str, channels: int = CHANNELS) -> nn.Module:
    """Build the layer ``(query, key, value) -> output`` that a name stands for.

    Args:
        name: "full-materialized" or "full-chunked" (all keys), "exactN" (the N best) or "psalN" (N found by PSAL).
        channels: of query and key; dot products are divided by the square root.
    """
    temperature = channels**0.5
    if match := EXACT.fullmatch(name):
        return ExactAttention(int(match[1]), temperature)
    if match := attentions.PSAL.fullmatch(name):
        return psal.PatchAttention(1, int(match[1]), similarity="dot", temperature=temperature, seed=SEED)
    return FullAttention(1, similarity="dot", temperature=temperature, method=name.removeprefix("full-"))


def label(name: str) -> str:
    """Return a name's label in tables and plots.

    >>> label("exact4"), label("psal4")
    ('Exact top-4', 'PSAL 4')
    """
    match = EXACT.fullmatch(name)
    return f"Exact top-{match[1]}" if match else attentions.label(name)
