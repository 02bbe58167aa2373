"""Matching and propagation with other attention, against their formulas; and the published network, if it is there."""

from pathlib import Path

import pytest
import torch
from support.commands import photo, save
from support.tolerances import assert_close
from torch import Tensor, nn

import psal
from psal.data.image_folder import square
from psal.data.samples import stereo_views
from psal.experiments.gmflow import wheel
from psal.experiments.gmflow.attentions import build, label
from psal.experiments.gmflow.cost import CostSetting, measure
from psal.experiments.gmflow.experiment import SIZES
from psal.experiments.gmflow.network import (
    MATCHING,
    PROPAGATION,
    FlowNetwork,
    Propagation,
    Remembered,
    check_size,
    match,
)

HEIGHT, WIDTH, CHANNELS = 5, 7, 6
ALL = HEIGHT * WIDTH
every = pytest.mark.parametrize("name", ["full-materialized", "full-chunked", f"exact{ALL}", f"psal{ALL}"])


def features(seed: int) -> Tensor:
    return torch.randn(2, CHANNELS, HEIGHT, WIDTH, generator=torch.Generator().manual_seed(seed))


def positions() -> Tensor:
    """x and y of each pixel, ``(H · W, 2)``."""
    y, x = torch.meshgrid(torch.arange(HEIGHT), torch.arange(WIDTH), indexing="ij")
    return torch.stack([x, y], -1).flatten(0, 1).float()


def tokens(x: Tensor) -> Tensor:
    return x.flatten(2).mT  # [B, H · W, C]


@every
def test_matching_with_all_keys_is_that_of_the_network(name: str) -> None:
    first, second = features(0), features(1)
    weights = (tokens(first) @ tokens(second).mT / CHANNELS**0.5).softmax(2)
    flow = match(build(name, CHANNELS), first, second)
    assert_close(tokens(flow), weights @ positions() - positions())


def test_matching_with_few_keys_takes_the_best_of_them() -> None:
    first, second = features(0), features(1)
    scores = tokens(first) @ tokens(second).mT / CHANNELS**0.5
    best = scores.topk(4, dim=2)
    weights = torch.zeros_like(scores).scatter(2, best.indices, best.values.softmax(2))
    flow = match(build("exact4", CHANNELS), first, second)
    assert_close(tokens(flow), weights @ positions() - positions())


@every
def test_propagation_with_all_keys_is_that_of_the_network(name: str) -> None:
    q_proj, k_proj = nn.Linear(CHANNELS, CHANNELS), nn.Linear(CHANNELS, CHANNELS)
    flow = torch.randn(2, 2, HEIGHT, WIDTH)
    query = q_proj(tokens(features(0)))
    weights = (query @ k_proj(query).mT / CHANNELS**0.5).softmax(2)
    out = Propagation(q_proj, k_proj, build(name, CHANNELS))(features(0), flow)
    assert_close(tokens(out), weights @ tokens(flow))


def test_propagation_in_a_window_does_not_use_the_attention() -> None:
    q_proj, k_proj = nn.Linear(CHANNELS, CHANNELS), nn.Linear(CHANNELS, CHANNELS)
    flow = torch.randn(2, 2, HEIGHT, WIDTH)
    few, many = (Propagation(q_proj, k_proj, build(name, CHANNELS)) for name in ("exact1", "full-chunked"))
    options = {"local_window_attn": True, "local_window_radius": 1}
    assert_close(few(features(0), flow, **options), many(features(0), flow, **options))
    assert not torch.allclose(few(features(0), flow), many(features(0), flow))


def test_labels_say_which_keys_are_used() -> None:
    assert [label(name) for name in ("exact16", "psal1", "full-chunked")] == [
        "Exact top-16", "PSAL 1", "Full attention, chunked",
    ]  # fmt: skip


def test_frames_that_do_not_split_into_windows_are_refused() -> None:
    for size in SIZES:
        check_size(*size)
    with pytest.raises(ValueError, match="height and width must be multiples of 32, got 1080 and 1920"):
        check_size(1080, 1920)


def test_equal_inputs_are_computed_once() -> None:
    calls = []

    def double(x: Tensor, factor: int = 2) -> Tensor:
        calls.append(x)
        return factor * x

    remembered = Remembered(double)
    small, large = torch.rand(3), torch.rand(4)
    for x in (small, large, small.clone(), large):
        assert_close(remembered(x, factor=2), 2 * x)
    assert len(calls) == 2
    assert_close(remembered(small + 1), 2 * small + 2)
    assert len(calls) == 3


@pytest.fixture(scope="module")
def frames() -> tuple[Tensor, Tensor]:
    """A photograph, and the same moved by 8 pixels."""
    picture = square(stereo_views()[0], 200)[None, :, :128]
    return picture[..., 8:], picture[..., :-8]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:torch.meshgrid")
def test_full_attention_is_the_published_network(published: Path, frames: tuple[Tensor, Tensor]) -> None:
    with torch.no_grad():
        expected = wheel.load(published).network(*frames)
    network = FlowNetwork(published)
    flow = network(*frames)
    assert (flow - expected).abs().max() < 1e-3  # pixels
    assert flow[0, 0].median() == pytest.approx(8, abs=0.5)
    materialized = build("full-materialized")
    with psal.swapped_attention(network, materialized, lambda _, name: name in (MATCHING, PROPAGATION)) as names:
        assert (network(*frames) - expected).abs().max() < 1e-3
    assert names == [MATCHING, PROPAGATION]


@pytest.mark.slow
def test_places_are_swapped_one_by_one(published: Path, frames: tuple[Tensor, Tensor]) -> None:
    network, again = FlowNetwork(published), FlowNetwork(published, remember=True)
    full = network(*frames)
    changes = {}
    for place in ("matching", "propagation", "both"):
        with network.swapped(place, build("psal1")), again.swapped(place, build("psal1")):
            flow = network(*frames)
            assert again(*frames).equal(flow)
        changes[place] = (flow - full).abs().mean().item()
    assert network(*frames).equal(full)
    assert len(set(changes.values())) == 3
    assert 0 < changes["propagation"] < changes["both"] < 3


@pytest.mark.slow
def test_the_peak_contains_the_matrix_of_all_pairs(published: Path, tmp_path: Path) -> None:
    files = [save(tmp_path / f"{number}.png", photo()) for number in range(2)]
    costs = {}
    for name in ("full-materialized", "psal4"):
        setting = CostSetting(str(published), (str(files[0]), str(files[1])), 512, 512, name, threads=1)
        costs[name] = measure("memory", setting) | measure("time", setting)
    matrix = 64**4 * 4  # bytes
    assert costs["full-materialized"]["attention_peak"] > 2 * matrix  # scores and weights
    assert costs["psal4"]["attention_peak"] < matrix / 2
    for cost in costs.values():
        assert cost["peak"] > cost["attention_peak"] > 0
        assert cost["seconds"] > cost["attention_seconds"] > 0
