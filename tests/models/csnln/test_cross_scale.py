"""Cross-scale layers against an oracle that follows the definition pixel by pixel."""

import itertools
import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F
from support.tolerances import assert_all_close, assert_close
from torch import Tensor

from psal.models.csnln import (
    CrossScaleAttention,
    PatchCrossScaleAttention,
    RandomCrossScaleAttention,
    WindowCrossScaleAttention,
    exact,
)
from psal.models.csnln.cross_scale import CrossScaleLayer

CHANNELS = 6
SIZES = [(2, 7, 9), (2, 8, 6), (2, 2, 3), (3, 10, 8), (3, 9, 6), (3, 3, 5)]  # scale, height, width
ALL_KEYS = 10**6
PEAKS = """
import torch
from psal.measure.memory import peak_of, return_freed_memory
from psal.models.csnln import PatchCrossScaleAttention

return_freed_memory()
torch.set_num_threads(1)
layer = PatchCrossScaleAttention(16, 2, seed=0)
with torch.no_grad():
    layer(torch.rand(1, 16, 64, 64))
    for side in (192, 384):
        x = torch.rand(1, 16, side, side)
        print(peak_of(lambda: layer(x), x.device))
"""


def features(*size: int, batch: int = 2) -> Tensor:
    return torch.randn(batch, CHANNELS, *size, dtype=torch.float64)


def layer_like(layer: CrossScaleLayer, weights: CrossScaleLayer) -> CrossScaleLayer:
    layer = layer.double()
    layer.load_state_dict(weights.state_dict())
    return layer


def patch(x: Tensor, top: int, left: int, side: int) -> Tensor:
    """A square of a map ``(C, H, W)``; zeros lie beyond the border."""
    border = 3 * side
    return F.pad(x, [border] * 4)[:, top + border :, left + border :][:, :side, :side]


def enlarge(layer: CrossScaleLayer, x: Tensor, keep: Tensor | None = None) -> Tensor:
    """The oracle: loops over queries and keys; ``keep`` ``(H, W, h, w)`` says which keys each query sees."""
    s, (high, wide) = layer.scale, x.shape[2:]
    small = F.interpolate(x, scale_factor=1 / s, mode="bilinear")
    keys = list(itertools.product(range(high // s), range(wide // s)))
    results = []
    for query, key, value in zip(layer.query(x), layer.key(small), layer.value(x), strict=True):
        canvas = x.new_zeros(CHANNELS, s * high + 2 * s, s * wide + 2 * s)
        for row, column in itertools.product(range(high), range(wide)):
            seen = [(i, j) for i, j in keys if keep is None or keep[row, column, i, j]]
            asked = patch(query, row - 1, column - 1, 3)
            compared = [patch(key, i - 1, j - 1, 3) for i, j in seen]
            scores = torch.stack([(asked * k).sum() / k.norm().clamp_min(1e-4) for k in compared])
            pasted = torch.stack([patch(value, s * (i - 1), s * (j - 1), 3 * s) for i, j in seen])
            mean = (torch.softmax(10 * scores, 0)[:, None, None, None] * pasted).sum(0)
            canvas[:, s * row : s * (row + 3), s * column : s * (column + 3)] += mean / 6
        results.append(canvas[:, s:-s, s:-s])
    return torch.stack(results)


@pytest.mark.parametrize(("scale", "height", "width"), SIZES)
def test_exact_attention_follows_the_definition(scale: int, height: int, width: int) -> None:
    layer, x = CrossScaleAttention(CHANNELS, scale).double(), features(height, width)
    assert_close(layer(x), enlarge(layer, x))


@pytest.mark.parametrize(("scale", "height", "width"), SIZES)
def test_patch_match_with_all_keys_is_exact_attention(scale: int, height: int, width: int) -> None:
    weights, x = CrossScaleAttention(CHANNELS, scale).double(), features(height, width)
    for layer in (
        PatchCrossScaleAttention(CHANNELS, scale, ALL_KEYS),
        RandomCrossScaleAttention(CHANNELS, scale, ALL_KEYS),
        WindowCrossScaleAttention(CHANNELS, scale, ALL_KEYS),
    ):
        assert_close(layer_like(layer, weights)(x), weights(x))


def test_gradients_agree() -> None:
    weights, x = CrossScaleAttention(CHANNELS, 2).double(), features(9, 7)
    direction = torch.randn(2, CHANNELS, 18, 14, dtype=torch.float64)
    found = []
    for layer in (weights, layer_like(PatchCrossScaleAttention(CHANNELS, 2, ALL_KEYS), weights)):
        x = x.detach().requires_grad_()
        names, parameters = zip(*layer.named_parameters(), strict=True)
        found.append(torch.autograd.grad((layer(x) * direction).sum(), [x, *parameters]))
    assert_all_close(found[1], found[0], ["x", *names])


def test_exact_attention_in_tiles_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    layer, x = CrossScaleAttention(CHANNELS, 2).double(), features(13, 11).requires_grad_()
    whole = layer(x)
    (gradient,) = torch.autograd.grad(whole.square().sum(), x)
    monkeypatch.setattr(exact, "CHUNK_ELEMENTS", 1)
    tiled = layer(x)
    assert_close(tiled, whole)
    assert_close(torch.autograd.grad(tiled.square().sum(), x)[0], gradient)


def test_one_neighbor_pastes_the_best_patch() -> None:
    weights, x = CrossScaleAttention(CHANNELS, 2).double(), features(9, 8, batch=1)
    query, key = weights.query(x)[0], weights.key(F.interpolate(x, scale_factor=0.5, mode="bilinear"))[0]
    keys = F.unfold(key, 3, padding=1).T
    scores = F.unfold(query, 3, padding=1).T @ F.normalize(keys, dim=1).T  # [queries, keys]
    best = F.one_hot(scores.argmax(1), len(keys)).bool().reshape(9, 8, 4, 4)
    layer = layer_like(PatchCrossScaleAttention(CHANNELS, 2, neighbors=1, seed=0), weights)
    found = layer(x)
    assert_close(found, enlarge(weights, x, best))


def test_a_window_sees_the_keys_around_its_own_place() -> None:
    layer, x = WindowCrossScaleAttention(CHANNELS, 2, window=3).double(), features(11, 14, batch=1)
    rows, columns = (
        (torch.arange(n // 2) - (torch.arange(n) // 2).clamp(1, n // 2 - 2)[:, None]).abs() <= 1 for n in (11, 14)
    )
    assert_close(layer(x), enlarge(layer, x, rows[:, None, :, None] & columns[None, :, None, :]))


def test_random_keys_are_others_than_the_best_and_depend_on_the_seed() -> None:
    weights, x = CrossScaleAttention(CHANNELS, 2).double(), features(20, 22, batch=1)
    layers = [RandomCrossScaleAttention(CHANNELS, 2, 3, seed=seed) for seed in (0, 0, 1)]
    first, again, other = (layer_like(layer, weights)(x) for layer in layers)
    assert first.equal(again)
    assert not first.equal(other)
    close = layer_like(PatchCrossScaleAttention(CHANNELS, 2, 3, seed=0), weights)(x)
    truth = weights(x)
    assert (close - truth).square().mean() < 0.2 * (first - truth).square().mean()


def test_rows_are_those_of_the_whole_map() -> None:
    x = features(12, 9)
    for layer in (CrossScaleAttention(CHANNELS, 3), PatchCrossScaleAttention(CHANNELS, 3, seed=0)):
        pasted = layer.double().attend(x)
        whole = pasted.rows(0, 12)
        assert_close(torch.cat([pasted.rows(0, 1), pasted.rows(1, 7), pasted.rows(7, 12)], 2), whole)


@pytest.mark.parametrize("kind", [CrossScaleAttention, PatchCrossScaleAttention])
def test_a_black_map_has_finite_gradients(kind: type[CrossScaleLayer]) -> None:
    layer = kind(CHANNELS, 2)
    for parameter in layer.parameters():
        torch.nn.init.zeros_(parameter)
    x = torch.zeros(1, CHANNELS, 6, 8, requires_grad=True)
    layer(x).sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in [x, *layer.parameters()])


def test_scores_keep_their_precision_under_autocast() -> None:
    x = torch.randn(1, CHANNELS, 14, 13)
    for layer in (CrossScaleAttention(CHANNELS, 2), PatchCrossScaleAttention(CHANNELS, 2, ALL_KEYS)):
        with torch.autocast("cpu", torch.bfloat16):
            found = layer(x)
        assert found.dtype == torch.float32
        assert (found - layer(x)).abs().mean() < 0.05 * layer(x).abs().mean()


@pytest.mark.parametrize("kind", [CrossScaleAttention, PatchCrossScaleAttention])
def test_half_types_are_returned_in_their_own_type(kind: type[CrossScaleLayer]) -> None:
    found = kind(CHANNELS, 2).bfloat16()(torch.randn(1, CHANNELS, 7, 9, dtype=torch.bfloat16))
    assert found.dtype == torch.bfloat16
    assert found.isfinite().all()


@pytest.mark.parametrize("kind", [CrossScaleAttention, PatchCrossScaleAttention])
def test_a_map_without_a_key_is_refused(kind: type[CrossScaleLayer]) -> None:
    with pytest.raises(ValueError, match="needs at least 3 × 3 pixels, got 2 × 9"):
        kind(CHANNELS, 3)(torch.rand(1, CHANNELS, 2, 9))


def test_memory_is_linear_in_the_number_of_pixels() -> None:
    done = subprocess.run([sys.executable, "-c", PEAKS], capture_output=True, text=True, check=True, timeout=300)
    small, large = map(int, done.stdout.split())
    assert large < 5 * small
    assert large < 384**2 * 16 * 4 * 20  # 20 maps; the scores of all pairs would be as large as 2304
