"""Contextual attention against a brute-force version of its definition."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from support.maps import normal_map
from support.tolerances import assert_all_close, assert_close
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from psal.models.inpainting import ContextualAttention, contextual_attention


def patch_at(x: Tensor, row: int, column: int, before: int, size: int) -> Tensor:
    """The patch ``[C, size, size]`` that starts ``before`` pixels above and left of a pixel; 0 beyond the border."""
    padded = F.pad(x, (size, size, size, size))
    top, left = row + size - before, column + size - before
    return padded[:, top : top + size, left : left + size]


def brute_force(query: Tensor, key: Tensor, value: Tensor, key_mask: Tensor) -> Tensor:
    """Contextual attention of single maps ``[C, H, W]``, pair by pair."""
    height, width = (query.shape[1] + 1) // 2, (query.shape[2] + 1) // 2
    key_height, key_width = (key.shape[1] + 1) // 2, (key.shape[2] + 1) // 2
    queries = [(y, x) for y in range(height) for x in range(width)]
    keys = [(y, x) for y in range(key_height) for x in range(key_width)]
    small_query, small_key = query[:, ::2, ::2], key[:, ::2, ::2]
    scores = torch.zeros(len(queries), len(keys), dtype=query.dtype)
    for i, at in enumerate(queries):
        for j, to in enumerate(keys):
            patch = patch_at(small_key, *to, 1, 3)
            normalized = patch / patch.norm().clamp_min(1e-4)
            scores[i, j] = (patch_at(small_query, *at, 1, 3) * normalized).sum()

    def fused(scores: Tensor) -> Tensor:
        out = torch.zeros_like(scores)
        for i in range(len(scores)):
            for j in range(scores.shape[1]):
                for step in (-1, 0, 1):
                    if 0 <= i + step < len(scores) and 0 <= j + step < scores.shape[1]:
                        out[i, j] += scores[i + step, j + step]
        return out

    by_row = fused(scores).view(height, width, key_height, key_width)
    by_column = fused(by_row.permute(1, 0, 3, 2).reshape(scores.shape)).view(width, height, key_width, key_height)
    final = by_column.permute(1, 0, 3, 2).reshape(scores.shape)

    # A key is valid if the 3 × 3 cells of 2 × 2 pixels around it are; cells beyond the border are.
    valid = [bool(patch_at(~key_mask, 2 * y, 2 * x, 2, 6).any().logical_not()) for y, x in keys]
    kept = torch.tensor(valid).to(query.dtype)
    weights = torch.softmax(final * kept * 10, 1) * kept
    pasted = torch.stack([patch_at(value, 2 * y, 2 * x, 1, 4) for y, x in keys])  # [M, Cv, 4, 4]
    out = F.conv_transpose2d(weights.T.reshape(1, -1, height, width), pasted, stride=2, padding=1) / 4
    return out[0, :, : query.shape[1], : query.shape[2]]


def maps(query_size: tuple[int, int], key_size: tuple[int, int]) -> list[Tensor]:
    shapes = (2, 3, *query_size), (2, 3, *key_size), (2, 2, *key_size)
    return [normal_map(*shape, seed=seed).double() for seed, shape in enumerate(shapes)]


def mask_with_a_hole(key: Tensor) -> Tensor:
    """A key mask with another hole in each batch element, one of them a single pixel that sampling would miss."""
    mask = torch.ones(len(key), 1, *key.shape[2:], dtype=torch.bool)
    mask[0, 0, 2:5, 3:6] = False
    mask[1, 0, 3, 1] = False
    return mask


SIZES = [((8, 10), (8, 10)), ((7, 9), (7, 9)), ((6, 9), (11, 8))]


@pytest.mark.parametrize(("query_size", "key_size"), SIZES)
@pytest.mark.parametrize("method", ["chunked", "materialized"])
def test_it_equals_brute_force(
    method: str, query_size: tuple[int, int], key_size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contextual_attention, "MAX_SCORES", 200)  # a few queries per chunk
    query, key, value = maps(query_size, key_size)
    mask = mask_with_a_hole(key)
    found = ContextualAttention(method=method)(query, key, value, key_mask=mask)
    expected = torch.stack([brute_force(*each) for each in zip(query, key, value, mask, strict=True)])
    assert_close(found, expected)


@pytest.mark.parametrize("max_scores", [1, 70, 333, 10**6])
def test_chunks_of_any_size_give_the_same_output_and_gradients(
    max_scores: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contextual_attention, "MAX_SCORES", max_scores)
    results = []
    for method in ("chunked", "materialized"):
        inputs = [x.requires_grad_() for x in maps((9, 13), (9, 13))]
        out = ContextualAttention(method=method)(*inputs, key_mask=mask_with_a_hole(inputs[1]))
        out.square().sum().backward()
        results.append([out.detach(), *(x.grad for x in inputs if x.grad is not None)])
    assert_all_close(results[0], results[1], ("output", "query", "key", "value"))


def test_gradients_are_those_of_finite_differences() -> None:
    query, key, value = (x[:1, :2].requires_grad_() for x in maps((4, 6), (4, 6)))
    mask = torch.ones(1, 1, 4, 6, dtype=torch.bool)
    mask[..., 0, 0] = False
    layer = ContextualAttention(temperature=1.0)
    assert torch.autograd.gradcheck(lambda *x: layer(*x, key_mask=mask), (query, key, value))


class LargestTensor(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Records the size of the largest tensor that any operation returns."""

    elements = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = function(*args, **(kwargs or {}))
        for x in out if isinstance(out, (tuple, list)) else [out]:
            if isinstance(x, Tensor):
                self.elements = max(self.elements, x.numel())
        return out


@pytest.mark.parametrize(("method", "holds_all"), [("chunked", False), ("materialized", True)])
def test_the_scores_of_all_pairs_are_never_held_with_chunks(
    method: str, holds_all: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contextual_attention, "MAX_SCORES", 4000)
    features = normal_map(1, 2, 48, 40, seed=0).requires_grad_()  # 480 queries and keys
    with LargestTensor() as largest:  # type: ignore[no-untyped-call]
        ContextualAttention(method=method)(features, features, features).sum().backward()
    assert (largest.elements >= 480**2) == holds_all
    assert holds_all or largest.elements < 480**2 / 10


def test_a_hole_is_filled_from_outside_of_it_alone() -> None:
    query = torch.rand(1, 4, 16, 16)
    value, mask = torch.rand(1, 1, 16, 16), torch.ones(1, 1, 16, 16, dtype=torch.bool)
    mask[..., 5:9, 6:11] = False
    marked = value.masked_fill(~mask, 1000.0)
    assert ContextualAttention()(query, query, marked, key_mask=mask).max() <= 1.01
    nothing = ContextualAttention()(query, query, value, key_mask=torch.zeros_like(mask))
    assert nothing.abs().max() == 0


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
def test_the_output_has_the_type_of_the_value(dtype: torch.dtype) -> None:
    x = torch.rand(1, 4, 10, 12, dtype=dtype)
    out = ContextualAttention()(x, x, x)
    assert (out.dtype, out.shape) == (dtype, x.shape)
    assert out.isfinite().all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"query": torch.rand(1, 3, 8)}, r"query must be \(B, C, H, W\), got shape"),
        ({"key": torch.rand(1, 5, 8, 8)}, "key and query must have the same batch size, channels"),
        ({"value": torch.rand(1, 3, 8, 6)}, "key and value must be on one grid"),
        ({"key_mask": torch.ones(1, 1, 8, 6, dtype=torch.bool)}, "key_mask must have shape"),
    ],
)
def test_maps_that_do_not_fit_are_named(change: dict[str, Tensor], message: str) -> None:
    x = torch.rand(1, 3, 8, 8)
    with pytest.raises(ValueError, match=message):
        ContextualAttention()(**({"query": x, "key": x, "value": x} | change))


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(ValueError, match="method must be one of 'chunked', 'materialized', got 'fast'"):
        ContextualAttention(method="fast")
    with pytest.raises(ValueError, match="temperature must be positive and finite, got 0"):
        ContextualAttention(0)
