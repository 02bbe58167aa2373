"""Patch attention inside vision transformers of transformers, as an attention implementation."""

import math
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from psal import checks
from psal.adapters.options import MIN_TOKENS, NEIGHBORS, AdapterOptions
from psal.tokens import token_attention

try:
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.integrations.sdpa_attention import sdpa_attention_forward
    from transformers.masking_utils import sdpa_mask
except ImportError as error:
    message = f"psal.adapters.transformers needs transformers: pip install -U transformers ({error})"
    raise ImportError(message, name="transformers") from None


def register(
    name: str = "psal",
    *,
    grid: Sequence[int] | None = None,
    prefix_tokens: int = 1,
    neighbors: int = NEIGHBORS,
    min_tokens: int = MIN_TOKENS,
    **search: Any,
) -> None:
    """Register patch attention for vision transformers: ``model.set_attn_implementation(name)`` then uses it.

    Patch tokens attend to their best patch tokens and to all prefix tokens, in one softmax. Prefix tokens attend to all
    tokens. A second call with the same name replaces the first, also in models that use it.

    Args:
        name: name of the implementation.
        grid: ``(H, W)`` of the patch tokens; None takes a square.
        prefix_tokens: number of class, distillation and register tokens before the patches: 1 for ViT, DINOv2 and CLIP,
            5 for DINOv2 with four registers, 0 for SigLIP.
        neighbors: patch tokens per patch token.
        min_tokens: with fewer patch tokens than this, or than ``neighbors``, the implementation "sdpa" is used.
        search: ``iterations``, ``init``, ``seed`` and ``backend`` of :func:`psal.patch_match`.

    Raises:
        ValueError, TypeError: if an argument is not as described.
    """
    attention = PatchTokenAttention(grid, prefix_tokens, AdapterOptions(neighbors, min_tokens, **search))
    AttentionInterface.register(name, attention)
    AttentionMaskInterface.register(name, sdpa_mask)  # without one, transformers would silently drop masks


class PatchTokenAttention:
    """The function that :func:`register` registers.

    Args:
        grid, prefix_tokens: as in :func:`register`.
        options: how to search, and when.

    Raises:
        ValueError, TypeError: if an argument is not as described, and in a call if the tokens do not fill the grid, or
            if there is a mask, causality, dropout or cross-attention.
    """

    def __init__(self, grid: Sequence[int] | None, prefix_tokens: int, options: AdapterOptions) -> None:
        if grid is not None:
            grid = tuple(checks.check_count("a side of the grid", side, 1) for side in grid)
            if len(grid) != 2:
                raise ValueError(f"grid must be (H, W), got {grid}")
        self.grid, self.options = grid, options
        self.prefix_tokens = checks.check_count("prefix_tokens", prefix_tokens, 0)

    def __call__(
        self,
        module: nn.Module,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attention_mask: Tensor | None,
        scaling: float | None = None,
        dropout: float = 0.0,
        **kwargs: Any,
    ) -> tuple[Tensor, None]:
        """Attend: query, key and value ``(B, heads, N, D)`` to ``(B, N, heads, D)``."""
        patches = query.shape[2] - self.prefix_tokens
        if not self.options.takes(patches):
            full: tuple[Tensor, None] = sdpa_attention_forward(
                module, query, key, value, attention_mask, dropout=dropout, scaling=scaling, **kwargs
            )
            return full
        _refuse(module, query, key, attention_mask, dropout, kwargs)
        grid = self._grid(patches)
        scale = query.shape[3] ** -0.5 if scaling is None else scaling
        out = _attend(query, key, value, grid, scale, self.options.search())  # [B, heads, N, D]
        return out.transpose(1, 2).contiguous(), None

    def _grid(self, patches: int) -> Sequence[int]:
        if self.grid is None:
            side = math.isqrt(patches)
            grid = (side, side)
            expected = "a square"
        else:
            grid, expected = self.grid, f"a grid of {self.grid}"
        if math.prod(grid) != patches:
            raise ValueError(
                f"{patches} patch tokens behind {self.prefix_tokens} prefix tokens are not {expected}: "
                f"register with grid=(H, W), and with the model's prefix_tokens"
            )
        return grid


def _refuse(
    module: nn.Module, query: Tensor, key: Tensor, mask: Tensor | None, dropout: float, kwargs: dict[str, Any]
) -> None:
    """Raise for what patch attention does not compute."""
    causal = kwargs.get("is_causal")
    if getattr(module, "is_causal", True) if causal is None else causal:  # True is transformers' own default
        raise ValueError("psal has no causal attention: set it for the vision model alone")
    if mask is not None or kwargs.get("position_bias") is not None:
        raise ValueError("psal takes no attention mask or position bias: call the model without, or use 'sdpa'")
    if dropout > 0:
        raise ValueError(
            f"psal has no attention dropout, got {dropout}: call model.eval(), or set it to 0 in the model's config"
        )
    if kwargs.get("softcap") is not None or kwargs.get("output_attentions"):
        raise ValueError("psal has no softcap and returns no attention weights: use 'eager'")
    if query.shape[1:3] != key.shape[1:3]:
        raise ValueError(
            f"psal takes self-attention with as many key heads as query heads, "
            f"got query {tuple(query.shape)} and key {tuple(key.shape)}"
        )


def _attend(
    query: Tensor, key: Tensor, value: Tensor, grid: Sequence[int], scale: float, search: dict[str, Any]
) -> Tensor:
    """Attend from P prefix tokens to all tokens, and from M patch tokens to the best M and all P."""
    prefix = query.shape[2] - math.prod(grid)
    patch_query, patch_key, patch_value = query[:, :, prefix:], key[:, :, prefix:], value[:, :, prefix:]
    if prefix == 0:
        out: Tensor = token_attention(patch_query, patch_key, patch_value, grid, scale=scale, **search)
        return out
    from_prefix = F.scaled_dot_product_attention(query[:, :, :prefix], key, value, scale=scale)  # [B, heads, P, D]
    to_patches, lse = token_attention(
        patch_query, patch_key, patch_value, grid, scale=scale, return_lse=True, **search
    )  # [B, heads, M, D], [B, heads, M]
    score = patch_query.to(lse.dtype) @ key[:, :, :prefix].to(lse.dtype).mT * scale  # [B, heads, M, P]
    # All patches count as one key, with the log-sum-exp of their scores as its score.
    weight = torch.cat([score, lse.unsqueeze(3)], 3).softmax(3).to(value.dtype)  # [B, heads, M, P + 1]
    from_patches = weight[..., :prefix] @ value[:, :, :prefix] + weight[..., prefix:] * to_patches
    return torch.cat([from_prefix, from_patches], 2)
