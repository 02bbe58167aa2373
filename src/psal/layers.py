"""Patch attention as modules: the layer itself, and a residual block with projections around it."""

import inspect
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from psal import checks
from psal.functional import search_and_average
from psal.matches import Matches
from psal.options import INITS, SearchOptions, Similarity


class AttentionLayer(nn.Module):
    """Base class of layers called as ``layer(query, key, value)``: what :func:`psal.swap_attention_` replaces."""


class PatchAttention(AttentionLayer):
    """:func:`psal.patch_attention` as a layer, with the same arguments; it has no weights.

    Args:
        patch_size, neighbors, iterations, similarity, aggregate, temperature, init, padding_mode, seed, backend: as
            in :func:`psal.patch_attention`; ``init`` is a word here, earlier matches are passed to :meth:`forward`.

    Attributes:
        options: the :class:`psal.options.SearchOptions`. Each of them is also an attribute of the layer, as in
            ``layer.patch_size``; assigning to one checks the new value.

    Raises:
        ValueError, TypeError: if an argument is not as described.

    >>> import torch
    >>> image, reference = torch.rand(1, 3, 16, 16), torch.rand(1, 3, 16, 16)
    >>> PatchAttention(patch_size=5, aggregate=True)(image, reference, reference).shape
    torch.Size([1, 3, 16, 16])
    """

    options: SearchOptions

    def __init__(
        self,
        patch_size: int | Sequence[int] = 7,
        neighbors: int = 3,
        *,
        iterations: int | None = None,
        similarity: Similarity = "l2",
        aggregate: bool = False,
        temperature: float = 1.0,
        init: str | None = None,
        padding_mode: str = "replicate",
        seed: int | None = None,
        backend: str | None = None,
    ) -> None:
        super().__init__()
        checks.check_temperature(temperature)
        if init is not None:
            checks.check_word("init", init, INITS)
        self.options = SearchOptions(patch_size, neighbors, iterations, similarity, init, padding_mode, seed, backend)
        self.aggregate = aggregate
        self.temperature = temperature

    def __getattr__(self, name: str) -> Any:  # called for names that are not plain attributes, such as the options
        if name in SearchOptions.__dataclass_fields__:
            return getattr(self.options, name)
        return super().__getattr__(name)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *SearchOptions.__dataclass_fields__]  # type: ignore[no-untyped-call]

    def __setattr__(self, name: str, value: Any) -> None:
        if name in SearchOptions.__dataclass_fields__:
            name, value = "options", replace(self.options, **{name: value})
        super().__setattr__(name, value)
        if name == "options":  # a similarity with weights is part of the layer: parameters, state_dict, to, eval
            self._modules.pop("similarity", None)
            if isinstance(value.similarity, nn.Module):
                self._modules["similarity"] = value.similarity

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_mask: Tensor | None = None,
        query_mask: Tensor | None = None,
        init: str | Matches | None = None,
    ) -> Tensor:
        """Attend.

        Args:
            query: ``(B, C, *Sq)``.
            key: ``(B, C, *Sk)``.
            value: ``(B, Cv, *Sk)``.
            key_mask: bool ``(B, 1, *Sk)``, True where a key may be matched.
            query_mask: bool ``(B, 1, *Sq)``, True where a query takes part.
            init: replaces the layer's own in this call, for example by the matches of the last video frame.

        Returns:
            ``(B, Cv, *Sq)``, in the value's type.
        """
        options = self.options if init is None else replace(self.options, init=init)
        return search_and_average(
            query, key, value, key_mask, query_mask, options, aggregate=self.aggregate, temperature=self.temperature
        )[0]

    def extra_repr(self) -> str:
        """Show patch size and k, and the other arguments where they differ from the default."""
        shown = [
            f"{name}={getattr(self, name)!r}"
            for name, argument in inspect.signature(PatchAttention).parameters.items()
            if name in ("patch_size", "neighbors") or getattr(self, name) != argument.default
        ]
        return ", ".join(shown)


class PatchAttentionBlock(nn.Module):
    """A residual block: query, key and value by 1×1 convolutions, patch attention, and an output projection.

    The output projection is initialized to zero, so a new block does not change what a trained network computes.

    Args:
        channels: number of channels of input and output.
        heads: number of groups that the channels are split into, each with its own matches.
        dimensions: number of spatial dimensions, 1 to 3.
        attention: keyword arguments of :class:`PatchAttention`.

    Raises:
        ValueError, TypeError: if an argument is not as described.

    >>> import torch
    >>> features = torch.rand(1, 8, 16, 16)
    >>> block = PatchAttentionBlock(8, heads=2, patch_size=3)
    >>> block(features).equal(features)
    True
    """

    def __init__(self, channels: int, heads: int = 1, *, dimensions: int = 2, **attention: Any) -> None:
        super().__init__()
        checks.check_count("channels", channels, 1)
        checks.check_count("heads", heads, 1)
        if channels % heads:
            raise ValueError(f"heads must divide channels, got {heads} heads for {channels} channels")
        if dimensions not in (1, 2, 3):
            raise ValueError(f"dimensions must be 1, 2 or 3, got {dimensions!r}")
        convolution: type[nn.Conv1d] | type[nn.Conv2d] | type[nn.Conv3d]
        convolution = (nn.Conv1d, nn.Conv2d, nn.Conv3d)[dimensions - 1]
        self.heads = heads
        self.query = convolution(channels, channels, 1)
        self.key = convolution(channels, channels, 1)
        self.value = convolution(channels, channels, 1)
        self.attention = PatchAttention(**attention)
        self.attention.options.sides(dimensions)  # checks their number
        self.out = convolution(channels, channels, 1)
        nn.init.zeros_(self.out.weight)
        if self.out.bias is not None:
            nn.init.zeros_(self.out.bias)

    def forward(
        self,
        x: Tensor,
        reference: Tensor | None = None,
        key_mask: Tensor | None = None,
        query_mask: Tensor | None = None,
    ) -> Tensor:
        """Let ``x`` attend to ``reference``, or to itself.

        Args:
            x: ``(B, channels, *Sq)``.
            reference: ``(B, channels, *Sk)``; None takes ``x``.
            key_mask: bool ``(B, 1, *Sk)``, True where a pixel of the reference may be matched.
            query_mask: bool ``(B, 1, *Sq)``, True where a pixel of ``x`` takes part.

        Returns:
            ``(B, channels, *Sq)``
        """
        reference = x if reference is None else reference
        attended = self.attention(
            self._split(self.query(x)),
            self._split(self.key(reference)),
            self._split(self.value(reference)),
            key_mask=None if key_mask is None else torch.cat([key_mask] * self.heads),
            query_mask=None if query_mask is None else torch.cat([query_mask] * self.heads),
        )
        out: Tensor = x + self.out(torch.cat(attended.chunk(self.heads), 1))
        return out

    def _split(self, x: Tensor) -> Tensor:
        """Move heads into the batch. Chunks, not a view: inductor cannot order a view's strides for symbolic sizes."""
        return torch.cat(x.chunk(self.heads, 1))
