"""Put one attention layer in the place of others inside a network."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from torch import nn

from psal.layers import AttentionLayer

Filter = Callable[[nn.Module, str], bool]
Replacement = nn.Module | Callable[[], nn.Module]


def is_attention(module: nn.Module, name: str) -> bool:
    """Whether a module is one of psal's layers or baselines: what is swapped unless a filter says otherwise."""
    return isinstance(module, AttentionLayer)


def swap_attention_(model: nn.Module, replacement: Replacement, filter_fn: Filter | None = None) -> list[str]:
    """Replace attention layers of a network in place, wherever they stand.

    Args:
        model: whose submodules are looked through; itself it stays.
        replacement: a layer, which then stands in all places, or a function without arguments that makes one for each;
            one layer in several places is replaced by one. If the function fails, nothing is replaced.
        filter_fn: ``(module, name) -> bool``, True for what is to be replaced; None takes psal's own layers and
            :mod:`psal.baselines`. What is inside a replaced module is not asked about.

    Returns:
        Names of what was replaced, as in ``model.named_modules()``, but all that a layer has in its parent; with a
        warning if there is nothing.

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
    """:func:`swap_attention_` for the time of a ``with`` block; afterwards the old layers are back."""
    swapped = _swap(model, replacement, filter_fn, frames_to_caller=4)
    try:
        yield [name for name, _, _ in swapped]
    finally:
        for name, parent, before in swapped:
            setattr(parent, name.rpartition(".")[2], before)


def _swap(
    model: nn.Module, replacement: Replacement, filter_fn: Filter | None, frames_to_caller: int
) -> list[tuple[str, nn.Module, nn.Module]]:
    """Swap; returns the name, the parent and the old module of each place."""
    if not callable(replacement):
        raise TypeError(f"replacement must be a module, or a function that makes one, got {type(replacement).__name__}")
    found = list(_places(model, filter_fn or is_attention, "", set()))
    if not found:
        what = "no attention layer was swapped: none was found, or filter_fn took none"
        warnings.warn(what, stacklevel=frames_to_caller)
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
    """Every place once, also those of one layer under several names, which ``named_children`` leaves out."""
    seen.add(module)
    for name, child in module._modules.items():
        full = f"{prefix}{name}"
        if child is None:
            continue
        if wanted(child, full):
            yield full, module, child
        elif child not in seen:
            yield from _places(child, wanted, f"{full}.", seen)
