"""Patch attention for transformers: tokens of a known grid, several heads, scaled dot products."""

import math
from collections.abc import Iterable, Sequence
from typing import Any, Literal, overload

from torch import Tensor

from psal import checks
from psal.functional import patch_attention
from psal.layers import AttentionLayer
from psal.precision import working_type

SEARCH_ARGUMENTS = (
    "iterations", "init", "key_mask", "query_mask", "padding_mode", "seed", "backend", "aggregate"
)  # fmt: skip


@overload
def token_attention(
    query: Tensor, key: Tensor, value: Tensor, grid: Sequence[int], key_grid: Sequence[int] | None = ..., *,
    neighbors: int = ..., scale: float | None = ..., patch_size: int | Sequence[int] = ...,
    return_lse: Literal[False] = ..., **search: Any,
) -> Tensor: ...  # fmt: skip


@overload
def token_attention(
    query: Tensor, key: Tensor, value: Tensor, grid: Sequence[int], key_grid: Sequence[int] | None = ..., *,
    neighbors: int = ..., scale: float | None = ..., patch_size: int | Sequence[int] = ...,
    return_lse: Literal[True], **search: Any,
) -> tuple[Tensor, Tensor]: ...  # fmt: skip


def token_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    grid: Sequence[int],
    key_grid: Sequence[int] | None = None,
    *,
    neighbors: int = 4,
    scale: float | None = None,
    patch_size: int | Sequence[int] = 1,
    return_lse: bool = False,
    **search: Any,
) -> Tensor | tuple[Tensor, Tensor]:
    """Compute softmax(scale · q·k) v over each token's best keys, in place of scaled dot-product attention.

    Arguments and result have the layout of :func:`torch.nn.functional.scaled_dot_product_attention`. The tokens are the
    pixels of a grid, row by row: matches of neighboring tokens are usually neighbors too, and the search relies on it.

    Args:
        query: ``(B, heads, N, D)``.
        key: ``(B, heads, M, D)``.
        value: ``(B, heads, M, Dv)``.
        grid: size of the query's grid, one to three numbers whose product is N, such as ``(H, W)``.
        key_grid: the same of the key's grid, with product M; None for ``grid``.
        neighbors: keys per token.
        scale: factor of the dot products; None for 1 / √D.
        patch_size: odd side of the patches that are compared; 1 compares single tokens, as full attention does.
        return_lse: also return log Σ exp(scale · q·k) over each token's keys, with which the result can be joined with
            attention to further keys. Not with ``aggregate``.
        search: ``iterations``, ``init``, ``key_mask``, ``query_mask``, ``padding_mode``, ``seed``, ``backend`` and
            ``aggregate`` of :func:`psal.patch_attention`. Masks are ``(B · heads, 1, *grid)``.

    Returns:
        ``(B, heads, N, Dv)``; with ``return_lse``, a pair of that and ``(B, heads, N)`` in float32 or float64.

    Raises:
        ValueError, TypeError: if an argument is not as described.

    >>> import torch
    >>> q, k, v = torch.rand(3, 1, 2, 6 * 8, 16)
    >>> token_attention(q, k, v, (6, 8)).shape
    torch.Size([1, 2, 48, 16])
    """
    key_grid = grid if key_grid is None else key_grid
    maps = _to_map("query", query, grid), _to_map("key", key, key_grid), _to_map("value", value, key_grid)
    if not query.shape[:2] == key.shape[:2] == value.shape[:2]:
        shapes = ", ".join(str(tuple(x.shape)) for x in (query, key, value))
        raise ValueError(f"query, key and value must have the same batch size and heads, got {shapes}")
    if unknown := search.keys() - SEARCH_ARGUMENTS:
        raise TypeError(f"{min(unknown)} is not an argument of token_attention: {', '.join(SEARCH_ARGUMENTS)} are")
    scale = query.shape[3] ** -0.5 if scale is None else scale
    if not 0 < scale < math.inf:
        raise ValueError(f"scale must be positive and finite, got {scale!r}")
    if return_lse and search.get("aggregate"):
        raise ValueError("return_lse works with aggregate=False alone: aggregation joins the keys of several tokens")
    if return_lse:  # half types would round the returned scores; the search itself is in float32 anyway
        working = working_type(query, key)
        maps = maps[0].to(working), maps[1].to(working), maps[2]
    out, matches = patch_attention(
        *maps,
        neighbors=neighbors,
        similarity="dot",
        temperature=1 / scale,
        patch_size=patch_size,
        return_matches=True,
        **search,
    )  # [B · heads, Dv, *grid], scores [B · heads, k, *grid]
    attended: Tensor = out.flatten(2).mT.reshape(*query.shape[:3], -1)
    if not return_lse:
        return attended
    return attended, (matches.score * scale).logsumexp(1).reshape(query.shape[:3])


def _to_map(name: str, tokens: Tensor, grid: Sequence[int]) -> Tensor:
    """Reshape tokens ``(B, heads, N, D)`` to a map ``(B · heads, D, *grid)``."""
    checks.check_tensor(name, tokens)
    if tokens.ndim != 4:
        raise ValueError(f"{name} must be (batch, heads, tokens, channels), got {tuple(tokens.shape)}")
    if not isinstance(grid, Iterable):
        raise TypeError(f"the grid must be a sequence such as (H, W), got {grid!r}")
    sizes = tuple(checks.check_count("a size of the grid", size, 1) for size in grid)
    if math.prod(sizes) != tokens.shape[2]:
        raise ValueError(f"{name} has {tokens.shape[2]} tokens, which do not fill a grid of {sizes}")
    return tokens.flatten(0, 1).mT.reshape(-1, tokens.shape[3], *sizes)


class TokenAttention(AttentionLayer):
    """:func:`token_attention` as a layer on tokens ``(B, N, C)``, whose channels are split into heads.

    Args:
        grid, key_grid: sizes of the grids, as in :func:`token_attention`.
        heads: number of groups that the channels are split into.
        options: further arguments of :func:`token_attention`.

    >>> import torch
    >>> tokens = torch.rand(1, 6 * 8, 32)
    >>> TokenAttention((6, 8), heads=4)(tokens, tokens, tokens).shape
    torch.Size([1, 48, 32])
    """

    def __init__(
        self, grid: Sequence[int], key_grid: Sequence[int] | None = None, *, heads: int = 1, **options: Any
    ) -> None:
        super().__init__()
        checks.check_count("heads", heads, 1)
        self.grid, self.key_grid, self.heads, self.options = grid, key_grid, heads, options

    def forward(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """Attend: query ``(B, N, C)``, key ``(B, M, C)``, value ``(B, M, Cv)`` to ``(B, N, Cv)``."""
        query, key, value = self._split("query", query), self._split("key", key), self._split("value", value)
        out: Tensor = token_attention(query, key, value, self.grid, self.key_grid, **self.options)
        return out.transpose(1, 2).flatten(2)  # [B, heads, N, Cv / heads] to [B, N, Cv]

    def _split(self, name: str, x: Tensor) -> Tensor:
        """From ``(B, N, C)`` to ``(B, heads, N, C / heads)``."""
        if x.ndim != 3:
            raise ValueError(f"{name} must be (batch, tokens, channels), got {tuple(x.shape)}")
        if x.shape[2] % self.heads:
            raise ValueError(f"heads must divide channels, got {self.heads} heads for {x.shape[2]} channels of {name}")
        return x.reshape(*x.shape[:2], self.heads, -1).transpose(1, 2)

    def extra_repr(self) -> str:
        """Show the grid and the heads."""
        return f"grid={tuple(self.grid)}, heads={self.heads}"
