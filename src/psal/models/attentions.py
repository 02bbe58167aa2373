"""Attention layers by name, as the commands call them: what a name stands for is said here alone."""

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
KNOWN = f"{', '.join(LABELS)}, full-strideN, localN (a window of N), psalN (N neighbours)"


def build_attention(
    name: str, *, channels: int, patch_size: int = 7, temperature: float = 1.0, seed: int | None = None
) -> nn.Module:
    """A layer ``(query, key, value) -> output`` on ``(B, C, H, W)`` maps.

    Args:
        name: "full" (by sdpa), "full-chunked", "full-materialized", "full-dot", "full-strideN" (of the keys), "local"
            with a window of 50, "localN" with one of N, "linear", "performer", "reformer", "psalN" with N neighbours,
            or "psal-aggregate" with one.
        channels: of query and key.
        patch_size: odd side of the patches.
        temperature: softmax temperature of those that compare by distance; the others have their authors'.
        seed: of those that draw random numbers; None takes it from torch's generator.

    Raises:
        UsageError: if there is no such name.

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
    """The name as tables and plots show it.

    Raises:
        UsageError: if there is no such name.

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
    """Whether there is an attention of that name.

    Raises:
        UsageError: if not.
    """
    if name not in LABELS and not any(kind.fullmatch(name) for kind in (PSAL, STRIDED, LOCAL)):
        raise UsageError(f"there is no attention named {name!r}: choose from {KNOWN}")
