"""Replace the attention layers of a network."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from torch import nn

from psal.layers import AttentionLayer

Filter = Callable[[nn.Module, str], bool]
Replacement = nn.Module | Callable[[], nn.Module]


def is_attention(module: nn.Module, name: str) -> bool:
    """Return whether a module is one of psal's layers or baselines: the default filter."""
    return isinstance(module, AttentionLayer)


def swap_attention_(model: nn.Module, replacement: Replacement, filter_fn: Filter | None = None) -> list[str]:
    """Replace all attention layers inside a network, in place.

    Warns if there is nothing to replace.

    Args:
        model: the network; its submodules at any depth are candidates, the model itself is not.
        replacement: a layer that is used in all places, or a function without arguments that makes one for each
            replaced layer. A layer that occurs in several places is replaced by a single new one. If the function
            fails, nothing is replaced.
        filter_fn: ``(module, name) -> bool``, True for modules to replace; None selects psal's own layers and
            those of :mod:`psal.baselines`. Submodules of a replaced module are not visited.

    Returns:
        Names of the replaced modules, as in ``model.named_modules()``; if a parent has one layer under several names,
        all of them.

    Raises:
        TypeError: if ``replacement`` is not a module and does not make one.

    >>> from psal import PatchAttention
    >>> from psal.models import Colorizer
    >>> network = Colorizer(PatchAttention(neighbors=3))
    >>> swap_attention_(network, PatchAttention(neighbors=1))
    ['attention']
    """
    return [name for name, _, _ in _swap(model, replacement, filter_fn, frames_to_caller=3)]


@contextmanager
def swapped_attention(
    model: nn.Module, replacement: Replacement, filter_fn: Filter | None = None
) -> Iterator[list[str]]:
    """Replace attention layers as :func:`swap_attention_` does inside a ``with`` block, and restore the old ones."""
    swapped = _swap(model, replacement, filter_fn, frames_to_caller=4)
    try:
        yield [name for name, _, _ in swapped]
    finally:
        for name, parent, before in swapped:
            setattr(parent, name.rpartition(".")[2], before)


def _swap(
    model: nn.Module, replacement: Replacement, filter_fn: Filter | None, frames_to_caller: int
) -> list[tuple[str, nn.Module, nn.Module]]:
    """Replace layers; return the name, the parent and the old module of each place."""
    if not callable(replacement):
        raise TypeError(f"replacement must be a module, or a function that makes one, got {type(replacement).__name__}")
    found = list(_places(model, filter_fn or is_attention, "", set()))
    if not found:
        message = "no attention layer was swapped: the model has none, or filter_fn selected none"
        warnings.warn(message, stacklevel=frames_to_caller)
    layers = {before: _make(replacement) for before in dict.fromkeys(before for _, _, before in found)}
    for name, parent, before in found:
        setattr(parent, name.rpartition(".")[2], layers[before].train(before.training))
    return found


def _make(replacement: Replacement) -> nn.Module:
    made = replacement if isinstance(replacement, nn.Module) else replacement()
    if not isinstance(made, nn.Module):
        raise TypeError(f"replacement must make a module, but made {type(made).__name__}")
    return made


def _places(
    module: nn.Module, wanted: Filter, prefix: str, seen: set[nn.Module]
) -> Iterator[tuple[str, nn.Module, nn.Module]]:
    """Yield name, parent and module of each place. ``named_children`` would skip a layer's second name."""
    seen.add(module)
    for name, child in module._modules.items():
        full = f"{prefix}{name}"
        if child is None:
            continue
        if wanted(child, full):
            yield full, module, child
        elif child not in seen:
            yield from _places(child, wanted, f"{full}.", seen)
