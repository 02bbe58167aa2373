"""Patch-based stochastic attention: every pixel attends to a whole image, in linear time and memory."""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from psal.functional import aggregate, attend, exact_match, patch_attention, patch_match
from psal.layers import PatchAttention, PatchAttentionBlock
from psal.matches import Matches, MatchQuality, match_quality
from psal.swap import swap_attention_, swapped_attention
from psal.tokens import TokenAttention, token_attention
from psal.version import __version__

if TYPE_CHECKING:
    from psal.editing.apply_shifts import apply_shifts
    from psal.editing.colorize import colorize
    from psal.editing.inpaint import inpaint
    from psal.editing.outpaint import outpaint
    from psal.editing.reconstruct import reconstruct
    from psal.editing.shift_map import ShiftMap
    from psal.editing.upscale import upscale
    from psal.io.photo import Photo

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

# Imported on first use, because they need the extra psal[edit].
_LAZY = {
    "Photo": "psal.io.photo",
    "ShiftMap": "psal.editing.shift_map",
    "apply_shifts": "psal.editing.apply_shifts",
    "colorize": "psal.editing.colorize",
    "inpaint": "psal.editing.inpaint",
    "outpaint": "psal.editing.outpaint",
    "reconstruct": "psal.editing.reconstruct",
    "upscale": "psal.editing.upscale",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'psal' has no attribute {name!r}")
    try:
        return getattr(import_module(_LAZY[name]), name)
    except ModuleNotFoundError as error:
        raise ImportError(f"psal.{name} needs {error.name}: pip install 'psal[edit]'", name=error.name) from None


def __dir__() -> list[str]:
    # Without the extra, help() and inspect would fail on names that cannot be imported.
    has_extra = all(find_spec(name) for name in ("imagecodecs", "numpy", "PIL", "safetensors", "scipy", "tifffile"))
    return sorted({*globals(), *(_LAZY if has_extra else ())})
