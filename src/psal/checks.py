"""Checks of arguments. Each error names the argument, shows the value and says what was expected."""

import math
import operator
import reprlib
import sys
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor

from psal.matches import Matches

FLOAT_TYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
MAX_POSITIONS = 2**31 - 1  # of a padded map, and matches of a call: the kernels count them in 32 bits


def check_tensor(name: str, x: Tensor) -> None:
    """Check for an ordinary, dense tensor."""
    if not isinstance(x, Tensor):
        raise TypeError(f"{name} must be a tensor, got {type(x).__name__}")
    if x.is_nested or x.layout != torch.strided:
        kind = "a nested tensor" if x.is_nested else str(x.layout)
        raise TypeError(f"{name} must be a dense tensor (torch.strided), got {kind}: convert it first")


def check_map(name: str, x: Tensor) -> None:
    """Check for a floating-point map ``(B, C, *S)`` with one to three spatial dimensions, none of them empty."""
    check_tensor(name, x)
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


def check_images(query: Tensor, key: Tensor, value: Tensor) -> None:
    """Check for 2-D maps that fit together: ``(B, C, H, W)``, ``(B, C, H', W')`` and ``(B, Cv, H', W')``."""
    for name, x in (("query", query), ("key", key), ("value", value)):
        check_map(name, x)
        if x.ndim != 4:
            raise ValueError(f"{name} must be (B, C, H, W), got shape {tuple(x.shape)}")
    check_same("key", key, "query", query, channels=True)
    check_value(value, key)


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
    check_tensor(name, mask)
    expected = (x.shape[0], 1, *x.shape[2:])
    if tuple(mask.shape) != expected:
        raise ValueError(f"{name} must have shape {expected}, got {tuple(mask.shape)}")
    check_device(name, mask, x.device)


def check_enough_keys(neighbors: int, key: Tensor, key_mask: Tensor | None) -> Tensor | None:
    """Check that there are k valid keys, and return the mask: compiled code checks it when it runs, through an op.

    On a CUDA device it is not checked, as the program would have to wait for it: missing matches are −1 then.
    """
    keys = math.prod(key.shape[2:])
    if neighbors > keys:
        raise ValueError(f"neighbors must not exceed the {keys} keys, got {neighbors}")
    if key_mask is None or key.shape[0] == 0:
        return key_mask
    if torch.compiler.is_compiling():
        checked: Tensor = checked_key_mask(key_mask, neighbors)
        return checked
    if has_values(key_mask):
        _check_key_mask(key_mask, neighbors)
    return key_mask


def _check_key_mask(key_mask: Tensor, neighbors: int) -> None:
    left = int(key_mask.flatten(1).sum(1).min())
    if left == 0:
        raise ValueError("key_mask leaves no key: at least one must be True in each batch element")
    if neighbors > left:
        raise ValueError(f"neighbors must not exceed the {left} keys that key_mask leaves, got {neighbors}")


@torch.library.custom_op("psal::checked_key_mask", mutates_args=())
def checked_key_mask(key_mask: Tensor, neighbors: int) -> Tensor:
    """Copy a key mask, and raise if it leaves fewer than k keys."""
    if not key_mask.is_cuda:
        _check_key_mask(key_mask, neighbors)
    return key_mask.clone()


@checked_key_mask.register_fake
def _(key_mask: Tensor, neighbors: int) -> Tensor:
    return torch.empty_like(key_mask)


def has_values(x: Tensor) -> bool:
    """Whether a tensor's contents can be read now: not while compiling, not of meta and fake tensors.

    Those of a CUDA device could be, but the program would have to wait for it.
    """
    return not (x.is_meta or x.is_cuda or isinstance(x, FakeTensor) or torch.compiler.is_compiling())


def check_fits(name: str, x: Tensor, sides: Sequence[int]) -> None:
    """Check that a map extended by a patch has fewer than 2³¹ positions. In compiled code the kernels check it."""
    if torch.compiler.is_compiling():
        return
    padded = [size + max(side - 1, 2) for size, side in zip(x.shape[2:], sides, strict=True)]  # the least border is 1
    if math.prod(padded) > MAX_POSITIONS:
        raise ValueError(
            f"patch_size is too large: with a border of half a patch, {name} would have {' × '.join(map(str, padded))} "
            f"positions, more than {MAX_POSITIONS}, got {tuple(sides)}"
        )


def check_match_count(neighbors: int, pixels: int) -> None:
    """Check that there are fewer than 2³¹ matches per batch element. In compiled code the kernels check it."""
    if not torch.compiler.is_compiling() and neighbors * pixels > MAX_POSITIONS:
        raise ValueError(f"neighbors must not exceed {MAX_POSITIONS // pixels} for {pixels} queries, got {neighbors}")


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
    check_tensor(f"{name}.index", index)
    check_tensor(f"{name}.score", score)
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
    """Check for positions in the value's grid, or −1, where the contents can be read."""
    keys = math.prod(value.shape[2:])
    if index.numel() == 0 or not has_values(index):
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


def check_count(name: str, count: int, minimum: int) -> int:
    """Check for an int of at least ``minimum`` that fits into 31 bits, and return it.

    Numpy's integers become Python's; the compiler's symbolic sizes are ints, too.
    """
    if not isinstance(count, int):
        try:
            count = operator.index(count)
        except TypeError:
            raise TypeError(f"{name} must be an int, got {count!r}") from None
    if not minimum <= count < 2**31:
        expected = f"at least {minimum}" if count < minimum else "below 2**31"
        raise ValueError(f"{name} must be {expected}, got {count}")
    return count


def check_temperature(temperature: float) -> float:
    """Check for a positive finite number, and return it as a Python float."""
    if not isinstance(temperature, (int, float)):
        temperature = _as_python(temperature)
    if not isinstance(temperature, (int, float)):
        raise TypeError(f"temperature must be a number, got {temperature!r}")
    if not 0 < temperature < math.inf or (isinstance(temperature, int) and temperature > sys.float_info.max):
        raise ValueError(f"temperature must be positive and finite, got {reprlib.repr(temperature)}")
    return float(temperature)
