"""Checks of what users pass in: each error names the argument and shows the value."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from psal.matches import Matches
from psal.options import SIMILARITIES, Similarity

FLOAT_TYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16)


def check_map(name: str, x: Tensor) -> None:
    """A floating-point map ``(B, C, *S)`` with one to three spatial dimensions, none of them empty."""
    if not isinstance(x, Tensor):
        raise TypeError(f"{name} must be a tensor, got {type(x).__name__}")
    if x.dtype not in FLOAT_TYPES:
        raise TypeError(f"{name} must be float32, float64, bfloat16 or float16, got {x.dtype}: convert it first")
    if not 3 <= x.ndim <= 5:
        raise ValueError(f"{name} must be (B, C, *S) with 1 to 3 spatial dimensions, got shape {tuple(x.shape)}")
    if 0 in x.shape[1:]:
        raise ValueError(f"{name} must have at least one channel and one pixel, got shape {tuple(x.shape)}")


def check_same(name: str, x: Tensor, other_name: str, other: Tensor, *, channels: bool) -> None:
    """Same device, batch size, number of dimensions and, if asked, channels."""
    if x.device != other.device:
        raise ValueError(f"{name} and {other_name} must be on one device, got {x.device} and {other.device}")
    if x.ndim != other.ndim or x.shape[0] != other.shape[0] or (channels and x.shape[1] != other.shape[1]):
        wanted = "batch size, channels and number" if channels else "batch size and number"
        raise ValueError(
            f"{name} and {other_name} must have the same {wanted} of dimensions, "
            f"got {tuple(x.shape)} and {tuple(other.shape)}"
        )


def check_device(name: str, x: Tensor, device: torch.device) -> None:
    if x.device != device:
        raise ValueError(f"{name} must be on {device}, got {x.device}")


def check_index(name: str, index: Tensor, value: Tensor) -> None:
    """Positions in the value's grid, or −1; looked at in eager mode only."""
    keys = math.prod(value.shape[2:])
    if index.numel() == 0 or index.device.type == "meta" or torch.compiler.is_compiling():
        return
    low, high = (int(x) for x in index.aminmax())
    if low < -1 or high >= keys:
        raise ValueError(f"{name} must be below the number of keys, {keys}, and at least -1, got {low} to {high}")


def check_patch_size(patch_size: int | Sequence[int], dimensions: int | None = None) -> tuple[int, ...]:
    """Odd positive sides, one a dimension; as many as there are if the number of dimensions is not known."""
    given = _plain(patch_size)
    if not isinstance(given, (int, Sequence)):
        raise TypeError(f"patch_size must be an int or one per dimension, got {given!r}")
    sides = (given,) * (dimensions or 1) if isinstance(given, int) else tuple(_plain(side) for side in given)
    if dimensions is not None and len(sides) != dimensions:
        raise ValueError(f"patch_size must be an int or {dimensions} of them, got {given!r}")
    if not all(isinstance(side, int) for side in sides):
        raise TypeError(f"patch_size must be made of ints, got {given!r}")
    if not all(side > 0 and side % 2 == 1 for side in sides):
        raise ValueError(f"patch_size must be odd and positive, got {given!r}")
    return sides


def _plain(number: Any) -> Any:
    """Python's own number or list for one of numpy or torch; anything else as it is."""
    return number.tolist() if hasattr(number, "tolist") else number


def check_word(name: str, word: object, words: Sequence[str], otherwise: str = "") -> None:
    """One of some words; ``otherwise`` is what else the caller takes."""
    expected = f"{name} must be one of {', '.join(map(repr, words))}{otherwise}"
    if not isinstance(word, str):  # arrays cannot even be compared with a word
        raise TypeError(f"{expected}, got {type(word).__name__}")
    if word not in words:
        raise ValueError(f"{expected}, got {word!r}")


def check_similarity(similarity: Similarity) -> Similarity:
    """A word, or a callable, which comes back so that it refuses to return anything but scores."""
    if not callable(similarity):
        check_word("similarity", similarity, SIMILARITIES, " or a function of two patch tensors")
        return similarity

    def scores(query_patches: Tensor, key_patches: Tensor) -> Tensor:
        found = similarity(query_patches, key_patches)
        expected = tuple(key_patches.shape[:-1])
        given = f"for patches of shape {tuple(key_patches.shape)}"
        if not isinstance(found, Tensor) or not found.is_floating_point():
            got = found.dtype if isinstance(found, Tensor) else type(found).__name__
            raise TypeError(f"similarity must return a float tensor of shape {expected} {given}, got {got}")
        if tuple(found.shape) != expected:
            raise ValueError(f"similarity must return shape {expected} {given}, got {tuple(found.shape)}")
        return found

    return scores


def check_mask(name: str, mask: Tensor | None, x: Tensor) -> None:
    """A bool mask ``(B, 1, *S)`` of a map ``(B, C, *S)``."""
    if mask is None:
        return
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
        got = mask.dtype if isinstance(mask, Tensor) else type(mask).__name__
        raise TypeError(f"{name} must be a bool tensor, True where a pixel takes part, got {got}")
    expected = (x.shape[0], 1, *x.shape[2:])
    if tuple(mask.shape) != expected:
        raise ValueError(f"{name} must have shape {expected}, got {tuple(mask.shape)}")
    if mask.device != x.device:
        raise ValueError(f"{name} must be on {x.device}, got {mask.device}")


def check_count(name: str, count: int, least: int) -> None:
    if not isinstance(count, int):  # a symbolic size of the compiler passes as an int
        raise TypeError(f"{name} must be an int, got {count!r}")
    if count < least:
        raise ValueError(f"{name} must be at least {least}, got {count}")


def check_enough_keys(neighbors: int, key: Tensor, key_mask: Tensor | None) -> None:
    """k different keys for every query; a mask's contents are looked at in eager mode only."""
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


def check_temperature(temperature: float) -> None:
    if not isinstance(temperature, (int, float)):
        raise TypeError(f"temperature must be a number, got {temperature!r}")
    if not 0 < temperature < math.inf:
        raise ValueError(f"temperature must be positive and finite, got {temperature!r}")


def check_matches(name: str, matches: tuple[Tensor, Tensor], query_shape: Sequence[int] | None = None) -> Matches:
    """Matches, or a plain pair, whose index and score agree and, if a query's shape is given, belong to it."""
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
