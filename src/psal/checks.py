"""Checks of arguments. Each error names the argument, shows the value and says what was expected."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from psal.matches import Matches

FLOAT_TYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16)


def check_map(name: str, x: Tensor) -> None:
    """Check for a floating-point map ``(B, C, *S)`` with one to three spatial dimensions, none of them empty."""
    if not isinstance(x, Tensor):
        raise TypeError(f"{name} must be a tensor, got {type(x).__name__}")
    if x.dtype not in FLOAT_TYPES:
        raise TypeError(f"{name} must be float32, float64, bfloat16 or float16, got {x.dtype}: convert it first")
    if not 3 <= x.ndim <= 5:
        raise ValueError(f"{name} must be (B, C, *S) with 1 to 3 spatial dimensions, got shape {tuple(x.shape)}")
    if 0 in x.shape[1:]:
        raise ValueError(f"{name} must have at least one channel and one pixel, got shape {tuple(x.shape)}")


def check_same(name: str, x: Tensor, other_name: str, other: Tensor, *, channels: bool) -> None:
    """Check for the same device, batch size, number of dimensions and, if ``channels``, number of channels."""
    if x.device != other.device:
        raise ValueError(f"{name} and {other_name} must be on one device, got {x.device} and {other.device}")
    if x.ndim != other.ndim or x.shape[0] != other.shape[0] or (channels and x.shape[1] != other.shape[1]):
        wanted = "batch size, channels and number" if channels else "batch size and number"
        raise ValueError(
            f"{name} and {other_name} must have the same {wanted} of dimensions, "
            f"got {tuple(x.shape)} and {tuple(other.shape)}"
        )


def check_value(value: Tensor, key: Tensor) -> None:
    """Check that a value map ``(B, Cv, *Sk)`` lies on the key's grid."""
    check_same("value", value, "key", key, channels=False)
    if key.shape[2:] != value.shape[2:]:
        raise ValueError(f"key and value must be on one grid, got {tuple(key.shape)} and {tuple(value.shape)}")


def check_device(name: str, x: Tensor, device: torch.device) -> None:
    """Check that a tensor is on a device."""
    if x.device != device:
        raise ValueError(f"{name} must be on {device}, got {x.device}")


def check_mask(name: str, mask: Tensor | None, x: Tensor) -> None:
    """Check for a bool mask ``(B, 1, *S)`` of a map ``(B, C, *S)``, or None."""
    if mask is None:
        return
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
        got = mask.dtype if isinstance(mask, Tensor) else type(mask).__name__
        raise TypeError(f"{name} must be a bool tensor, True where a pixel takes part, got {got}")
    expected = (x.shape[0], 1, *x.shape[2:])
    if tuple(mask.shape) != expected:
        raise ValueError(f"{name} must have shape {expected}, got {tuple(mask.shape)}")
    check_device(name, mask, x.device)


def check_enough_keys(neighbors: int, key: Tensor, key_mask: Tensor | None) -> None:
    """Check that there are k valid keys. The mask's contents are read in eager mode only."""
    keys = math.prod(key.shape[2:])
    if neighbors > keys:
        raise ValueError(f"neighbors must not exceed the {keys} keys, got {neighbors}")
    if key_mask is None or key.shape[0] == 0 or torch.compiler.is_compiling():
        return
    left = int(key_mask.flatten(1).sum(1).min())
    if left == 0:
        raise ValueError("key_mask leaves no key: at least one must be True in each batch element")
    if neighbors > left:
        raise ValueError(f"neighbors must not exceed the {left} keys that key_mask leaves, got {neighbors}")


def check_matches(name: str, matches: tuple[Tensor, Tensor], query_shape: Sequence[int] | None = None) -> Matches:
    """Check types and shapes of matches, or of a plain (index, score) pair, and return them as :class:`Matches`.

    Args:
        name: the argument's name, for the message.
        matches: index and score.
        query_shape: ``(B, C, *Sq)`` if they must belong to a query of that shape.
    """
    if not isinstance(matches, tuple) or len(matches) != 2 or not all(isinstance(x, Tensor) for x in matches):
        raise TypeError(f"{name} must be Matches, as patch_match returns them, got {type(matches).__name__}")
    index, score = matches
    if index.dtype != torch.int64:
        raise TypeError(f"{name}.index must be int64, got {index.dtype}")
    if score.dtype not in FLOAT_TYPES:
        raise TypeError(f"{name}.score must be floating point, got {score.dtype}")
    if index.shape != score.shape or not 3 <= index.ndim <= 5 or 0 in index.shape[1:]:
        raise ValueError(
            f"{name}.index and {name}.score must both be (B, k, *Sq), got {tuple(index.shape)} and {tuple(score.shape)}"
        )
    if query_shape is not None and (index.shape[0], *index.shape[2:]) != (query_shape[0], *query_shape[2:]):
        raise ValueError(
            f"{name} must belong to the query: expected (B, k, *Sq) for a query of shape {tuple(query_shape)}, "
            f"got {tuple(index.shape)}"
        )
    return Matches(index, score)


def check_index(name: str, index: Tensor, value: Tensor) -> None:
    """Check for positions in the value's grid, or −1. The contents are read in eager mode only."""
    keys = math.prod(value.shape[2:])
    if index.numel() == 0 or index.device.type == "meta" or torch.compiler.is_compiling():
        return
    low, high = (int(x) for x in index.aminmax())
    if low < -1 or high >= keys:
        raise ValueError(f"{name} must be below the number of keys, {keys}, and at least -1, got {low} to {high}")


def check_scores(scores: Tensor, patches: Tensor) -> Tensor:
    """Check what a callable similarity returned for patches ``(..., d)``, and return it: a float tensor ``(...)``."""
    expected = tuple(patches.shape[:-1])
    given = f"for patches of shape {tuple(patches.shape)}"
    if not isinstance(scores, Tensor) or not scores.is_floating_point():
        got = scores.dtype if isinstance(scores, Tensor) else type(scores).__name__
        raise TypeError(f"similarity must return a float tensor of shape {expected} {given}, got {got}")
    if tuple(scores.shape) != expected:
        raise ValueError(f"similarity must return shape {expected} {given}, got {tuple(scores.shape)}")
    return scores


def check_patch_size(patch_size: int | Sequence[int]) -> int | tuple[int, ...]:
    """Check for an odd positive int, or several, and return them as Python ints."""
    given = _as_python(patch_size)
    if not isinstance(given, (int, Sequence)):
        raise TypeError(f"patch_size must be an int or one per dimension, got {given!r}")
    sides = (given,) if isinstance(given, int) else tuple(_as_python(side) for side in given)
    if not all(isinstance(side, int) for side in sides):
        raise TypeError(f"patch_size must be made of ints, got {given!r}")
    if not all(side > 0 and side % 2 == 1 for side in sides):
        raise ValueError(f"patch_size must be odd and positive, got {given!r}")
    return given if isinstance(given, int) else sides


def patch_sides(patch_size: int | Sequence[int], dimensions: int) -> tuple[int, ...]:
    """Check a patch size and return its side along each of ``dimensions`` spatial axes.

    >>> patch_sides(7, 2), patch_sides([3, 5], 2)
    ((7, 7), (3, 5))
    """
    checked = check_patch_size(patch_size)
    if isinstance(checked, int):
        return (checked,) * dimensions
    if len(checked) != dimensions:
        raise ValueError(f"patch_size must be an int or {dimensions} of them, got {checked!r}")
    return checked


def _as_python(number: Any) -> Any:
    """Convert a number or array of numpy or torch to Python's int, float or list; leave anything else alone."""
    return number.tolist() if hasattr(number, "tolist") else number


def check_word(name: str, word: object, words: Sequence[str], otherwise: str = "") -> None:
    """Check for one of some words; ``otherwise`` names, for the message, what else the caller accepts."""
    expected = f"{name} must be one of {', '.join(map(repr, words))}{otherwise}"
    if not isinstance(word, str):  # comparing an array with a word would fail or give an array
        raise TypeError(f"{expected}, got {type(word).__name__}")
    if word not in words:
        raise ValueError(f"{expected}, got {word!r}")


def check_count(name: str, count: int, minimum: int) -> None:
    """Check for an int of at least ``minimum``; the compiler's symbolic sizes are ints too."""
    if not isinstance(count, int):
        raise TypeError(f"{name} must be an int, got {count!r}")
    if count < minimum:
        raise ValueError(f"{name} must be at least {minimum}, got {count}")


def check_temperature(temperature: float) -> None:
    """Check for a positive finite number."""
    if not isinstance(temperature, (int, float)):
        raise TypeError(f"temperature must be a number, got {temperature!r}")
    if not 0 < temperature < math.inf:
        raise ValueError(f"temperature must be positive and finite, got {temperature!r}")
