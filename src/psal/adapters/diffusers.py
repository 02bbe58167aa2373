"""Patch attention inside models of diffusers, as an attention processor."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from psal import checks
from psal.adapters.options import MIN_TOKENS, NEIGHBORS, AdapterOptions
from psal.swap import Filter
from psal.tokens import token_attention

try:
    from diffusers.models.attention_processor import (
        Attention,
        AttnProcessor,
        AttnProcessor2_0,
        SlicedAttnProcessor,
        XFormersAttnProcessor,
    )
except ImportError as error:
    message = f"psal.adapters.diffusers needs diffusers: pip install -U diffusers ({error})"
    raise ImportError(message, name="diffusers") from None

# They compute the same: scaled dot-product attention with the module's own projections.
STANDARD_PROCESSORS = (AttnProcessor, AttnProcessor2_0, SlicedAttnProcessor, XFormersAttnProcessor)

Size = Sequence[int] | Callable[[], Sequence[int]]
Processor = Callable[..., Tensor]


class PatchAttnProcessor:
    """An attention processor of diffusers: patch attention in self-attention with many tokens.

    Cross-attention, and self-attention with few tokens, stay with another processor. :func:`swap_attention_` makes one
    for each layer of a model and finds the grids by itself. For a fixed size one processor serves a whole UNet:
    ``unet.set_attn_processor(PatchAttnProcessor((64, 96)))``.

    Args:
        size: height and width of the latent, or a function that returns them. Tokens ``(B, N, C)`` are taken for the
            pixels of that map, halved, rounding up, until there are N of them. Maps ``(B, C, H, W)`` have their own.
        former: the processor for all other calls; None for diffusers' ``AttnProcessor2_0``.
        neighbors: keys per token.
        min_tokens: self-attention with fewer tokens than this, or than ``neighbors``, is left to ``former``.
        search: ``iterations``, ``init``, ``seed`` and ``backend`` of :func:`psal.patch_match`.

    Raises:
        ValueError, TypeError: if an argument is not as described, and in a call if the tokens do not fit to the size,
            or if there is an attention mask.
    """

    def __init__(
        self,
        size: Size,
        former: Processor | None = None,
        *,
        neighbors: int = NEIGHBORS,
        min_tokens: int = MIN_TOKENS,
        **search: Any,
    ) -> None:
        if not callable(size):
            size = tuple(checks.check_count("a side of the latent", side, 1) for side in size)
            if len(size) != 2:
                raise ValueError(f"size must be (height, width), got {size}")
        self.size = size
        self.former = AttnProcessor2_0() if former is None else former
        self.options = AdapterOptions(neighbors, min_tokens, **search)

    def __call__(
        self,
        attn: Attention,
        hidden_states: Tensor,
        encoder_hidden_states: Tensor | None = None,
        attention_mask: Tensor | None = None,
        temb: Tensor | None = None,
    ) -> Tensor:
        """Attend: hidden states ``(B, N, C)`` or ``(B, C, H, W)`` to the same shape."""
        tokens = hidden_states.shape[1] if hidden_states.ndim == 3 else hidden_states.shape[2:].numel()
        if encoder_hidden_states is not None or not self.options.takes(tokens):
            extra = {} if temb is None else {"temb": temb}  # not every processor takes it
            return self.former(attn, hidden_states, encoder_hidden_states, attention_mask, **extra)
        if attention_mask is not None:
            raise ValueError(
                f"PatchAttnProcessor takes no attention_mask in self-attention, got one of shape "
                f"{tuple(attention_mask.shape)}: leave this layer out by filter_fn, or raise min_tokens above {tokens}"
            )
        x = hidden_states if attn.spatial_norm is None else attn.spatial_norm(hidden_states, temb)
        grid = tuple(x.shape[2:]) if x.ndim == 4 else level_grid(self._size(), tokens)
        if x.ndim == 4:
            x = x.flatten(2).mT  # [B, N, C]
        if attn.group_norm is not None:
            x = attn.group_norm(x.mT).mT
        query, key, value = (
            projection(x).unflatten(2, (attn.heads, -1)).transpose(1, 2)
            for projection in (attn.to_q, attn.to_k, attn.to_v)
        )  # [B, heads, N, D]
        if attn.norm_q is not None:
            query = attn.norm_q(query)
        if attn.norm_k is not None:
            key = attn.norm_k(key)
        out: Tensor = token_attention(query, key, value, grid, scale=attn.scale, **self.options.search())
        projection, dropout = attn.to_out
        out = dropout(projection(out.transpose(1, 2).flatten(2)))  # [B, N, C]
        if hidden_states.ndim == 4:
            out = out.mT.reshape(len(out), -1, *grid)  # [B, C, H, W]
        if attn.residual_connection:
            out = out + hidden_states
        return out.div(attn.rescale_output_factor)

    def _size(self) -> Sequence[int]:
        return self.size() if callable(self.size) else self.size


def level_grid(size: Sequence[int], tokens: int) -> tuple[int, int]:
    """Return the grid of a number of tokens among a map and its halves, which round up as strided convolutions do.

    >>> level_grid((9, 15), 40)
    (5, 8)
    """
    height, width = size
    while height * width > tokens:
        height, width = -(-height // 2), -(-width // 2)
    if height * width != tokens:
        raise ValueError(
            f"{tokens} tokens are not the pixels of a map of {tuple(size)} or its halves: give PatchAttnProcessor "
            f"the latent's size, or leave this layer out by filter_fn"
        )
    return height, width


class MapSize:
    """A forward pre-hook that records height and width of a module's input, if that is a map ``(B, C, H, W)``."""

    size: tuple[int, int] | None = None

    def __call__(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Look at the first argument, which diffusers' modules call ``hidden_states`` or ``sample``."""
        x = args[0] if args else kwargs.get("hidden_states", kwargs.get("sample"))
        self.size = (x.shape[2], x.shape[3]) if isinstance(x, Tensor) and x.ndim == 4 else None


class InnermostMap:
    """The size of the innermost map among those given to the modules around a layer.

    Args:
        records: hooks of the modules, innermost first.
    """

    def __init__(self, records: Sequence[MapSize]) -> None:
        self.records = records

    def __call__(self) -> tuple[int, int]:
        """Return height and width."""
        sizes = [record.size for record in self.records if record.size is not None]
        if not sizes:
            raise ValueError("no module around this layer is given a map (B, C, H, W): leave it out by filter_fn")
        return sizes[0]


def is_standard_self_attention(module: nn.Module, name: str) -> bool:
    """Return whether an attention module has no cross-attention and a standard processor: the default filter."""
    if not isinstance(module, Attention) or module.is_cross_attention:
        return False
    return type(_former(module.processor)) in STANDARD_PROCESSORS


def swap_attention_(
    model: nn.Module,
    filter_fn: Filter | None = None,
    *,
    neighbors: int = NEIGHBORS,
    min_tokens: int = MIN_TOKENS,
    **search: Any,
) -> list[str]:
    """Let the self-attention of a diffusers model use patch attention, in place.

    Each layer's grid is that of the map ``(B, C, H, W)`` given to the innermost module around it, which a forward
    pre-hook records: any latent size works, also odd ones. Cross-attention and self-attention with few tokens keep the
    processor that they have. Warns if there is nothing to replace.

    Args:
        model: a model with diffusers' ``Attention`` inside, such as ``UNet2DConditionModel`` or ``pipe.unet``.
        filter_fn: ``(module, name) -> bool``, True for ``Attention`` modules to replace; None selects self-attention
            with one of diffusers' standard processors.
        neighbors: keys per token.
        min_tokens: layers with fewer tokens than this, or than ``neighbors``, use their former processor in that call.
        search: ``iterations``, ``init``, ``seed`` and ``backend`` of :func:`psal.patch_match`.

    Returns:
        Names of the attention modules with a new processor.

    Raises:
        ValueError, TypeError: if an argument is not as described.
    """
    return list(_swap(model, filter_fn, AdapterOptions(neighbors, min_tokens, **search), frames_to_caller=3)[0])


@contextmanager
def swapped_attention(
    model: nn.Module,
    filter_fn: Filter | None = None,
    *,
    neighbors: int = NEIGHBORS,
    min_tokens: int = MIN_TOKENS,
    **search: Any,
) -> Iterator[list[str]]:
    """Use patch attention as :func:`swap_attention_` does inside a ``with`` block, and restore the processors."""
    options = AdapterOptions(neighbors, min_tokens, **search)
    before, handles = _swap(model, filter_fn, options, frames_to_caller=4)
    try:
        yield list(before)
    finally:
        for handle in handles:
            handle.remove()
        for module, processor in before.values():
            module.set_processor(processor)


def _swap(
    model: nn.Module, filter_fn: Filter | None, options: AdapterOptions, frames_to_caller: int
) -> tuple[dict[str, tuple[Attention, Processor]], list[RemovableHandle]]:
    """Replace processors; return module and old processor by name, and the handles of new hooks."""
    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be a module, such as pipe.unet of a pipeline, got {type(model).__name__}")
    modules, wanted = dict(model.named_modules()), filter_fn or is_standard_self_attention
    before = {
        name: (module, module.processor)
        for name, module in modules.items()
        if isinstance(module, Attention) and wanted(module, name)
    }
    if not before:
        message = "no attention layer was swapped: the model has no standard self-attention, or filter_fn selected none"
        warnings.warn(message, stacklevel=frames_to_caller)
    handles: list[RemovableHandle] = []
    for name, (module, processor) in before.items():
        around = [modules[name.rsplit(".", depth)[0]] for depth in range(1, name.count(".") + 1)]
        maps = InnermostMap([_record(outer, handles) for outer in (*around, model)])
        module.set_processor(PatchAttnProcessor(maps, _former(processor), **asdict(options)))
    return before, handles


def _former(processor: Processor) -> Processor:
    """Return the processor that patch attention replaced, if it did, so that swapping twice does not nest."""
    return processor.former if isinstance(processor, PatchAttnProcessor) else processor


def _record(module: nn.Module, handles: list[RemovableHandle]) -> MapSize:
    """Return the module's hook that records its input's size; a new one's handle is added to ``handles``."""
    for hook in module._forward_pre_hooks.values():
        if isinstance(hook, MapSize):
            return hook
    record = MapSize()
    handles.append(module.register_forward_pre_hook(record, with_kwargs=True))
    return record
