"""Parts of GMFlow that are computed in bands, against their formulas written out pixel by pixel."""

import itertools

import pytest
import torch
from support.tolerances import assert_close
from torch import Tensor, nn

from psal.experiments.gmflow import bounded_memory
from psal.experiments.gmflow.bounded_memory import (
    TokenBands,
    local_matching,
    local_propagation,
    regions,
    window_attention,
)

bands = pytest.mark.parametrize("max_scores", [1, 100, 2**24], ids=["single rows", "bands", "at once"])


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@bands
@pytest.mark.parametrize("shifted", [False, True])
@pytest.mark.parametrize(("height", "width", "splits"), [(6, 10, 2), (9, 12, 3), (8, 4, 4)])
def test_pixels_attend_to_their_window(
    height: int, width: int, splits: int, shifted: bool, max_scores: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded_memory, "MAX_SCORES", max_scores)
    query, key, value = (random(2, height * width, 5, seed=seed) for seed in range(3))
    window = height // splits, width // splits
    shift = (window[0] // 2, window[1] // 2) if shifted else (0, 0)
    labels = regions((height, width), *window, *shift, torch.device("cpu")) if shifted else None
    out = window_attention(query, key, value, splits, with_shift=shifted, h=height, w=width, attn_mask=labels)

    y, x = (each.flatten() for each in torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij"))
    y, x = y - shift[0], x - shift[1]  # before the first window are pixels from the other border
    place = y % height // window[0] * splits + x % width // window[1]
    side = 2 * (y < 0).int() + (x < 0).int()
    scores = query @ key.mT / 5**0.5  # [B, H · W, H · W]
    scores = scores - 100.0 * (side[:, None] != side)
    scores = scores.masked_fill(place[:, None] != place, -torch.inf)
    assert_close(out, scores.softmax(2) @ value)


@bands
@pytest.mark.parametrize("radius", [1, 2])
def test_local_matching_averages_offsets_inside_the_frame(
    radius: int, max_scores: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded_memory, "MAX_SCORES", max_scores)
    first, second = random(2, 7, 5, 6, seed=0), random(2, 7, 5, 6, seed=1)
    expected = torch.empty(2, 2, 5, 6, dtype=torch.float64)
    for b, y, x in itertools.product(range(2), range(5), range(6)):
        window = itertools.product(range(-radius, radius + 1), repeat=2)
        inside = [(v, u) for v, u in window if 0 <= y + v < 5 and 0 <= x + u < 6]
        scores = torch.stack([first[b, :, y, x] @ second[b, :, y + v, x + u] for v, u in inside]) / 7**0.5
        expected[b, :, y, x] = scores.softmax(0) @ scores.new_tensor([(u, v) for v, u in inside])
    flow, _ = local_matching(first, second, radius)
    assert_close(flow, expected)


@bands
def test_local_propagation_counts_pixels_outside_the_frame_as_zeros(
    max_scores: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded_memory, "MAX_SCORES", max_scores)
    query, key, flow = random(2, 7, 5, 6, seed=0), random(2, 7, 5, 6, seed=1), random(2, 2, 5, 6, seed=2)
    expected = torch.empty_like(flow)
    for b, y, x in itertools.product(range(2), range(5), range(6)):
        scores, flows = [], []
        for v, u in itertools.product((-1, 0, 1), repeat=2):
            inside = 0 <= y + v < 5 and 0 <= x + u < 6
            scores.append(query[b, :, y, x] @ key[b, :, y + v, x + u] if inside else query.new_zeros(()))
            flows.append(flow[b, :, y + v, x + u] if inside else query.new_zeros(2))
        expected[b, :, y, x] = (torch.stack(scores) / 7**0.5).softmax(0) @ torch.stack(flows)
    assert_close(local_propagation(query, key, flow, 1), expected)


def test_tokens_pass_a_network_in_bands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_memory, "MAX_SCORES", 100)
    network = nn.Sequential(nn.Linear(4, 12), nn.GELU(), nn.Linear(12, 3))
    tokens = torch.randn(2, 37, 4)
    assert_close(TokenBands(network)(tokens), network(tokens))
