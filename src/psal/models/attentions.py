"""Attention layers by name, as on the command line."""

import re

from torch import nn

from psal.baselines import FullAttention, LinearAttention, LocalAttention, PerformerAttention, ReformerAttention
from psal.errors import UsageError
from psal.layers import PatchAttention

PSAL, STRIDED, LOCAL = (re.compile(rf"{kind}([1-9]\d*)") for kind in ("psal", "full-stride", "local"))
LABELS = {
    "full": "Full attention, sdpa",
    "full-chunked": "Full attention, chunked",
    "full-materialized": "Full attention, materialized",
    "full-dot": "Full attention, dot product",
    "local": "Local attention",
    "linear": "Linear attention",
    "performer": "Performer",
    "reformer": "Reformer",
    "psal-aggregate": "PSAL Aggreg.",
}
KNOWN = f"{', '.join(LABELS)}, full-strideN, localN (a window of N), psalN (N neighbors)"


def build_attention(
    name: str, *, channels: int, patch_size: int = 7, temperature: float = 1.0, seed: int | None = None
) -> nn.Module:
    """Build the layer ``(query, key, value) -> output`` on ``(B, C, H, W)`` maps that a name stands for.

    Args:
        name: "full" (by sdpa), "full-chunked", "full-materialized", "full-dot", "full-strideN" (every N-th key),
            "local" (window of 50 pixels), "localN" (window of N), "linear", "performer", "reformer", "psalN"
            (N neighbors) or "psal-aggregate" (one neighbor, aggregated).
        channels: number of channels of query and key.
        patch_size: odd side of the patches.
        temperature: softmax temperature of layers that compare by distance; the others keep their authors' default.
        seed: seed of layers that draw random numbers; None draws one from torch's generator.

    Raises:
        UsageError: if the name is unknown.

    >>> build_attention("psal3", channels=16)
    PatchAttention(patch_size=7, neighbors=3)
    """
    check_name(name)
    if match := PSAL.fullmatch(name):
        return PatchAttention(patch_size, int(match[1]), temperature=temperature, seed=seed)
    if match := STRIDED.fullmatch(name):
        return FullAttention(patch_size, stride=int(match[1]), temperature=temperature)
    if match := LOCAL.fullmatch(name):
        return LocalAttention(patch_size, window=int(match[1]), temperature=temperature)
    match name:
        case "full":
            return FullAttention(patch_size, temperature=temperature)
        case "full-chunked" | "full-materialized":
            return FullAttention(patch_size, temperature=temperature, method=name.removeprefix("full-"))
        case "full-dot":
            return FullAttention(patch_size, similarity="dot", temperature=temperature, method="chunked")
        case "local":
            return LocalAttention(patch_size, temperature=temperature)
        case "linear":
            return LinearAttention(patch_size)
        case "performer":
            return PerformerAttention(channels, patch_size, seed=seed)
        case "reformer":
            return ReformerAttention(patch_size, seed=seed)
        case "psal-aggregate":
            return PatchAttention(patch_size, 1, aggregate=True, temperature=temperature, seed=seed)
    raise AssertionError(f"{name} is listed but not built")


def label(name: str) -> str:
    """Return a name's label in tables and plots.

    Raises:
        UsageError: if the name is unknown.

    >>> label("psal3"), label("full-stride10")
    ('PSAL 3', 'Full attention, stride 10')
    """
    check_name(name)
    if match := PSAL.fullmatch(name):
        return f"PSAL {match[1]}"
    if match := STRIDED.fullmatch(name):
        return f"Full attention, stride {match[1]}"
    if match := LOCAL.fullmatch(name):
        return f"Local attention, window {match[1]}"
    return LABELS[name]


def check_name(name: str) -> None:
    """Check that an attention layer of this name exists.

    Raises:
        UsageError: if not.
    """
    if name not in LABELS and not any(kind.fullmatch(name) for kind in (PSAL, STRIDED, LOCAL)):
        raise UsageError(f"there is no attention named {name!r}: choose from {KNOWN}")
