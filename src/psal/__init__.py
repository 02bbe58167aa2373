"""Patch-based stochastic attention: every pixel attends to a whole image, in linear time and memory."""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from psal.version import __version__

if TYPE_CHECKING:
    from psal.editing.apply_shifts import apply_shifts
    from psal.editing.colorize import colorize
    from psal.editing.inpaint import inpaint
    from psal.editing.outpaint import outpaint
    from psal.editing.reconstruct import reconstruct
    from psal.editing.shift_map import ShiftMap
    from psal.editing.upscale import upscale
    from psal.functional import aggregate, attend, exact_match, patch_attention, patch_match
    from psal.io.photo import Photo
    from psal.layers import PatchAttention, PatchAttentionBlock
    from psal.matches import Matches, MatchQuality, match_quality
    from psal.ops.backends import backends
    from psal.swap import swap_attention_, swapped_attention
    from psal.tokens import TokenAttention, token_attention

__all__ = [
    "MatchQuality",
    "Matches",
    "PatchAttention",
    "PatchAttentionBlock",
    "Photo",
    "ShiftMap",
    "TokenAttention",
    "__version__",
    "aggregate",
    "apply_shifts",
    "attend",
    "backends",
    "colorize",
    "exact_match",
    "inpaint",
    "match_quality",
    "outpaint",
    "patch_attention",
    "patch_match",
    "reconstruct",
    "swap_attention_",
    "swapped_attention",
    "token_attention",
    "upscale",
]

# Imported on first use: torch takes a second to load, which ``psal --help`` has no need for.
_LAYER = {
    "MatchQuality": "psal.matches",
    "Matches": "psal.matches",
    "PatchAttention": "psal.layers",
    "PatchAttentionBlock": "psal.layers",
    "TokenAttention": "psal.tokens",
    "aggregate": "psal.functional",
    "attend": "psal.functional",
    "backends": "psal.ops.backends",
    "exact_match": "psal.functional",
    "match_quality": "psal.matches",
    "patch_attention": "psal.functional",
    "patch_match": "psal.functional",
    "swap_attention_": "psal.swap",
    "swapped_attention": "psal.swap",
    "token_attention": "psal.tokens",
}
# These also need the extra psal[edit].
_EDIT = {
    "Photo": "psal.io.photo",
    "ShiftMap": "psal.editing.shift_map",
    "apply_shifts": "psal.editing.apply_shifts",
    "colorize": "psal.editing.colorize",
    "inpaint": "psal.editing.inpaint",
    "outpaint": "psal.editing.outpaint",
    "reconstruct": "psal.editing.reconstruct",
    "upscale": "psal.editing.upscale",
}
_LAZY = _LAYER | _EDIT
_MODULES = ("checks", "functional", "layers", "matches", "ops", "options", "seeds", "swap", "tokens")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"psal.{name}")
    if name not in _LAZY:
        raise AttributeError(f"module 'psal' has no attribute {name!r}")
    if name in _LAYER:
        for other, module in _LAYER.items():
            globals()[other] = getattr(import_module(module), other)
        return globals()[name]
    try:
        found = getattr(import_module(_EDIT[name]), name)
    except ModuleNotFoundError as error:
        raise ImportError(f"psal.{name} needs {error.name}: pip install 'psal[edit]'", name=error.name) from None
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    # Without the extra, help() and inspect would fail on names that cannot be imported.
    has_extra = all(find_spec(name) for name in ("imagecodecs", "numpy", "PIL", "safetensors", "scipy", "tifffile"))
    return sorted({*globals(), *_LAYER, *(_EDIT if has_extra else ())})
