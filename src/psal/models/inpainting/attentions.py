"""The attention layers of the inpainting network by name, as on the command line."""

import torch
from torch import Tensor, nn

from psal.errors import UsageError
from psal.layers import AttentionLayer, PatchAttention
from psal.models.attentions import PSAL
from psal.models.inpainting.contextual_attention import ContextualAttention

PATCH_SIZE = 7  # 3 on maps that are downsampled by 2
ITERATIONS = 5  # of the paper's search, from random matches
LABELS = {
    "contextual": "Contextual attention",
    "contextual-materialized": "Contextual attention, materialized",
    "none": "No attention",
}
KNOWN = f"{', '.join(LABELS)}, psalN (N neighbors)"


class NoAttention(AttentionLayer):
    """A layer without output, to leave the attention out of a trained network."""

    def forward(self, query: Tensor, key: Tensor, value: Tensor, key_mask: Tensor | None = None) -> Tensor:
        """Return zeros ``(B, Cv, H, W)`` for a query ``(B, C, H, W)``."""
        return torch.zeros_like(value[:, :, :1, :1]).expand(-1, -1, *query.shape[2:])


def build_inpainting_attention(name: str, seed: int | None = None) -> nn.Module:
    """Build the layer ``(query, key, value, key_mask) -> output`` that a name stands for.

    Args:
        name: "contextual" (in chunks), "contextual-materialized" (all pairs at once), "psalN" (N neighbors, as in the
            paper: 7 × 7 patches, 5 iterations from random matches, the central pixel alone), or "none" (zeros).
        seed: seed of the search; None draws one from torch's generator.

    Raises:
        UsageError: if the name is unknown.

    >>> build_inpainting_attention("psal3")
    PatchAttention(patch_size=7, neighbors=3, iterations=5, init='random')
    """
    check_name(name)
    if match := PSAL.fullmatch(name):
        return PatchAttention(PATCH_SIZE, int(match[1]), iterations=ITERATIONS, init="random", seed=seed)
    if name == "none":
        return NoAttention()
    return ContextualAttention(method="materialized" if name == "contextual-materialized" else "chunked")


def label(name: str) -> str:
    """Return a name's label in tables and plots.

    Raises:
        UsageError: if the name is unknown.

    >>> label("psal3")
    'PSAL 3'
    """
    check_name(name)
    match = PSAL.fullmatch(name)
    return f"PSAL {match[1]}" if match else LABELS[name]


def check_name(name: str) -> None:
    """Check that an attention layer of this name exists.

    Raises:
        UsageError: if not.
    """
    if name not in LABELS and not PSAL.fullmatch(name):
        raise UsageError(f"there is no attention named {name!r} for inpainting: choose from {KNOWN}")
