"""The attention layers of the super-resolution network by name, as on the command line."""

import re

from psal.baselines import FullAttention, LocalAttention
from psal.errors import UsageError
from psal.layers import AttentionLayer
from psal.models.csnln.cross_scale import (
    CrossScaleLayer,
    PatchCrossScaleAttention,
    RandomCrossScaleAttention,
    WindowCrossScaleAttention,
)
from psal.models.csnln.exact import CrossScaleAttention

COUNTED = re.compile(r"(psal|random|local)([1-9]\d*)")
LOCAL = re.compile(r"local([1-9]\d*)")
LABELS = {"exact": "exact, all keys", "none": "branch left out"}
CROSS_SCALE = "exact, psalN (N neighbors), randomN (N random keys), localN (a window of N × N keys), none"
IN_SCALE = "exact, localN (a window of N × N pixels)"


def build_cross_scale(name: str, channels: int, scale: int, seed: int | None = None) -> CrossScaleLayer:
    """Build the cross-scale layer that a name stands for. All have the same weights; for "none" they have no effect.

    Raises:
        UsageError: if the name is unknown.
    """
    check_cross_scale(name)
    match = COUNTED.fullmatch(name)
    if match is None:
        return CrossScaleAttention(channels, scale)
    kind, count = match[1], int(match[2])
    if kind == "local":
        return WindowCrossScaleAttention(channels, scale, count)
    layer = PatchCrossScaleAttention if kind == "psal" else RandomCrossScaleAttention
    return layer(channels, scale, count, seed)


def is_left_out(name: str) -> bool:
    """Return whether a name stands for no cross-scale branch."""
    return name == "none"


def build_in_scale(name: str) -> AttentionLayer:
    """Build the in-scale layer that a name stands for; it compares single pixels by dot product.

    Raises:
        UsageError: if the name is unknown.
    """
    check_in_scale(name)
    match = LOCAL.fullmatch(name)
    if match is None:
        return FullAttention(1, similarity="dot")
    return LocalAttention(1, window=int(match[1]), similarity="dot")


def check_cross_scale(name: str) -> None:
    """Check that a cross-scale layer of this name exists.

    Raises:
        UsageError: if not.
    """
    if name not in LABELS and not COUNTED.fullmatch(name):
        raise UsageError(f"there is no cross-scale attention named {name!r}: choose from {CROSS_SCALE}")


def check_in_scale(name: str) -> None:
    """Check that an in-scale layer of this name exists.

    Raises:
        UsageError: if not.
    """
    if name != "exact" and not LOCAL.fullmatch(name):
        raise UsageError(f"there is no in-scale attention named {name!r}: choose from {IN_SCALE}")


def label(name: str) -> str:
    """Return a cross-scale layer's label in tables.

    Raises:
        UsageError: if the name is unknown.

    >>> label("psal3"), label("random3"), label("local7")
    ('PSAL 3', '3 random keys', 'window of 7 × 7 keys')
    """
    check_cross_scale(name)
    match = COUNTED.fullmatch(name)
    if match is None:
        return LABELS[name]
    kind, count = match[1], match[2]
    return {"psal": f"PSAL {count}", "random": f"{count} random keys"}.get(kind, f"window of {count} × {count} keys")
