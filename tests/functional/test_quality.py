"""The default search comes close to the exact matches. Margins are such that a weaker search exceeds them."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import psal
from psal.data.samples import samples


def stereo_pair(size: int) -> tuple[Tensor, Tensor]:
    """The bundled pair of views, ``(1, 3, size, size)`` each."""
    sample = next(sample for sample in samples() if sample.edit == "reconstruct")
    assert sample.partner is not None
    views = (torch.tensor(view).permute(2, 0, 1)[None] / 255 for view in (sample.picture, sample.partner))
    query, key = (F.interpolate(view, (size, size), mode="bilinear", antialias=True) for view in views)
    return query, key


def features(image: Tensor, channels: int) -> Tensor:
    """Random convolutions with ReLU."""
    weight = torch.randn(channels, 3, 3, 3, generator=torch.Generator().manual_seed(0)) / 27**0.5
    return F.conv2d(image, weight, padding=1).relu()


def cost_ratio(query: Tensor, key: Tensor, **options: Any) -> float:
    exact_options = {name: options[name] for name in ("patch_size", "similarity") if name in options}
    exact = psal.exact_match(query, key, neighbors=1, **exact_options)
    found = psal.patch_match(query, key, seed=0, **options)
    return psal.match_quality(found, exact, similarity=options.get("similarity", "l2")).cost_ratio


@pytest.mark.parametrize(
    ("case", "limit"),
    [
        ({}, 1.008),
        ({"patch_size": 1}, 1.02),
        ({"patch_size": 1, "neighbors": 1}, 1.02),
        ({"patch_size": 3}, 1.02),
        ({"patch_size": 11}, 1.008),
        ({"similarity": "cosine"}, 1.02),
        ({"init": "random"}, 1.15),
    ],
)
def test_photographs(case: dict[str, Any], limit: float) -> None:
    assert cost_ratio(*stereo_pair(96), **case) < limit


@pytest.mark.parametrize("channels", [16, 64])
@pytest.mark.parametrize("patch_size", [1, 7])
def test_feature_maps(patch_size: int, channels: int) -> None:
    query, key = (features(x, channels) for x in stereo_pair(64))
    assert cost_ratio(query, key, patch_size=patch_size) < 1.02


@pytest.mark.parametrize(("contrast", "dtype"), [(1e-3, torch.float32), (1e-4, torch.float64)])
def test_an_offset_does_not_matter(contrast: float, dtype: torch.dtype) -> None:
    query, key = (contrast * x.to(dtype) + 1000 for x in stereo_pair(64))
    assert cost_ratio(query, key) < 1.02


def test_noise() -> None:
    assert cost_ratio(torch.rand(1, 3, 64, 64), torch.rand(1, 3, 64, 64)) < 1.08


def test_noise_in_one_channel() -> None:
    """Ten frequencies of one channel would leave descriptors half empty."""
    query, key = (torch.randn(1, 1, 64, 64, generator=torch.Generator().manual_seed(seed)) for seed in (0, 1))
    weak, weak_key = stereo_pair(64)
    assert cost_ratio(query, key) < 1.05
    assert cost_ratio(torch.cat([weak[:, :2], 1000 * query], 1), torch.cat([weak_key[:, :2], 1000 * key], 1)) < 1.05


def test_every_sweep_draws_other_random_steps() -> None:
    """A single query in a bowl has no neighbors to learn from: random steps alone take it to the bottom."""
    rows, columns = torch.meshgrid(torch.arange(31.0), torch.arange(37.0), indexing="ij")
    key = torch.stack([rows, columns])[None]
    query = torch.tensor([11.0, 29.0]).reshape(1, 2, 1, 1)
    start = psal.Matches(torch.zeros(1, 1, 1, 1, dtype=torch.int64), torch.zeros(1, 1, 1, 1))
    found = psal.patch_match(query, key, patch_size=1, neighbors=1, init=start, iterations=600, seed=0)
    assert found.index.item() == 11 * 37 + 29


def test_the_default_is_one_sweep_after_the_tree_and_it_matters() -> None:
    query, key = stereo_pair(96)
    exact = psal.exact_match(query, key, neighbors=1)
    ratios = [
        psal.match_quality(psal.patch_match(query, key, seed=0, iterations=n), exact).cost_ratio for n in (0, None, 3)
    ]
    assert ratios[0] - 1 > 1.5 * (ratios[1] - 1)
    assert ratios[1] - 1 > ratios[2] - 1


def test_the_border_is_matched_as_well_as_the_inside() -> None:
    """A network's zero padding marks the border of its features, so border patches match others at the same border."""
    query, key = features(stereo_pair(97)[0], 16), features(stereo_pair(101)[1].flip(2), 16)
    border = torch.ones_like(query[:, :1], dtype=torch.bool)
    border[..., 1:-1, 1:-1] = False
    exact = psal.exact_match(query, key, neighbors=1, query_mask=border)
    found = psal.patch_match(query, key, seed=0)
    assert (found.score[:, :1][border].sum() / exact.score[border].sum()).item() < 1.1
