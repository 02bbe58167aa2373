"""The super-resolution network: shapes, gradients, bands, and what it refuses."""

import itertools

import pytest
import torch
import torch.nn.functional as F
from support.tolerances import assert_close
from torch import Tensor

import psal
from psal.models import CSNLN

CROSS_SCALE = ("exact", "psal3", "random3", "local3", "none")


def network(scale: int = 2, cross_scale: str = "psal3", in_scale: str = "local5", seed: int = 0) -> CSNLN:
    torch.manual_seed(0)
    return CSNLN(scale, width=8, depth=2, cross_scale=cross_scale, in_scale=in_scale, seed=seed).double()


def picture(height: int, width: int, batch: int = 1) -> Tensor:
    return torch.rand(batch, 3, height, width, dtype=torch.float64)


@pytest.mark.parametrize(("scale", "cross_scale"), list(itertools.product((2, 3, 4), CROSS_SCALE)))
def test_sides_grow_by_the_scale(scale: int, cross_scale: str) -> None:
    large = network(scale, cross_scale)(picture(11, 14, batch=2))
    assert large.shape == (2, 3, scale * 11, scale * 14)
    assert large.isfinite().all()


@pytest.mark.parametrize("scale", [2, 3, 4])
def test_all_attentions_have_the_same_weights(scale: int) -> None:
    weights = network(scale, "exact", "exact").state_dict()
    for cross_scale, in_scale in itertools.product(CROSS_SCALE, ("exact", "local5")):
        network(scale, cross_scale, in_scale).load_state_dict(weights)


@pytest.mark.parametrize("scale", [2, 3, 4])
def test_psal_with_all_keys_is_the_exact_network(scale: int) -> None:
    x = picture(9, 11)
    assert_close(network(scale, "psal1000")(x), network(scale, "exact")(x))


def test_a_window_of_all_pixels_is_exact_in_scale_attention() -> None:
    x = picture(9, 11)
    assert_close(network(in_scale="local30")(x), network(in_scale="exact")(x))


@pytest.mark.parametrize(("scale", "cross_scale"), list(itertools.product((2, 4), CROSS_SCALE[:4])))
def test_gradients_reach_all_weights(scale: int, cross_scale: str) -> None:
    model = network(scale, cross_scale)
    (model(picture(10, 8)) - picture(10 * scale, 8 * scale)).abs().mean().backward()
    lacking = [name for name, x in model.named_parameters() if x.grad is None or not x.grad.abs().sum() > 0]
    assert lacking == []


def test_the_branch_left_out_learns_without_its_weights() -> None:
    model = network(cross_scale="none")
    (model(picture(10, 8)) - picture(20, 16)).abs().mean().backward()
    assert not any(x.requires_grad for name, x in model.named_parameters() if ".cross_scale." in name)
    assert all(x.grad is not None for name, x in model.named_parameters() if ".in_scale." in name)


@pytest.mark.parametrize(("scale", "cross_scale"), list(itertools.product((2, 3, 4), ("exact", "psal3"))))
def test_bands_change_nothing(scale: int, cross_scale: str) -> None:
    model, x = network(scale, cross_scale), picture(71, 7)
    with torch.no_grad():
        whole = model(x)
        model.band_pixels = 1
        assert_close(model(x), whole)


def test_the_tail_sees_all_recurrences() -> None:
    model, x = network(), picture(8, 9)
    before = model(x)
    for recurrence in range(2):
        changed = network()
        with torch.no_grad():
            changed.tail.weight[:, 8 * recurrence : 8 * recurrence + 8] += 0.1
        assert not torch.allclose(changed(x), before)


def test_the_mean_color_is_added_back() -> None:
    model = network()
    for parameter in model.tail.parameters():
        torch.nn.init.zeros_(parameter)
    expected = torch.tensor([0.4488, 0.4371, 0.4040])[:, None, None].expand(3, 14, 16).double()
    assert_close(model(picture(7, 8))[0], expected)


def test_a_residual_network_adds_to_the_bicubic_enlargement() -> None:
    x = picture(7, 8)
    model, other = network(), CSNLN(2, width=8, depth=2, in_scale="local5", residual=True, seed=0).double()
    other.load_state_dict(model.state_dict())
    mean = torch.tensor([0.4488, 0.4371, 0.4040])[:, None, None].double()
    bicubic = F.interpolate(x, scale_factor=2, mode="bicubic", antialias=True)
    assert_close(other(x), model(x) - mean + bicubic)


def test_in_scale_attention_can_be_swapped() -> None:
    model = network(4)
    names = psal.swap_attention_(model, psal.PatchAttention(1, 4, similarity="dot", seed=0))
    assert names == [f"cell.steps.{step}.projection.in_scale.attention" for step in (0, 1)]
    assert model(picture(9, 8)).isfinite().all()


def test_half_precision_runs_under_autocast() -> None:
    model, x = network().float(), picture(12, 10).float()
    with torch.autocast("cpu", torch.bfloat16):
        found = model(x)
    assert (found - model(x)).abs().max() < 0.05


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"scale": 5}, "scale must be one of 2, 3, 4, got 5"),
        ({"width": 7}, "width must be even, got 7"),
        ({"depth": 0}, "depth must be at least 1, got 0"),
        ({"cross_scale": "psal0"}, "no cross-scale attention named 'psal0': choose from exact, psalN"),
        ({"in_scale": "psal3"}, "no in-scale attention named 'psal3': choose from exact, localN"),
    ],
)
def test_wrong_arguments_are_named(arguments: dict[str, object], message: str) -> None:
    options: dict[str, object] = {"scale": 2, "width": 8, "depth": 2} | arguments
    with pytest.raises(ValueError, match=message):
        CSNLN(**options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (torch.rand(1, 1, 9, 9), r"x must be RGB \(B, 3, H, W\)"),
        (torch.rand(3, 9, 9), r"x must be RGB \(B, 3, H, W\)"),
        (torch.rand(1, 3, 1, 9), "needs at least 2 × 2 pixels, got 1 × 9"),
    ],
)
def test_wrong_maps_are_named(x: Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        network().float()(x)


@pytest.mark.parametrize(
    ("cross_scale", "in_scale", "size", "needed"),
    [
        ("exact", "local5", (1080, 1920), r"1\.1e\+12 pairs in each recurrence \(4,300 GB of scores\)"),
        ("psal3", "exact", (1080, 1920), r"4\.3e\+12 pairs in each recurrence \(17,199 GB of scores\)"),
        ("exact", "local5", (512, 513), r"1\.7e\+10 pairs"),
    ],
)
def test_exact_attention_is_refused_beforehand_with_what_it_needs(
    cross_scale: str, in_scale: str, size: tuple[int, int], needed: str
) -> None:
    model = network(cross_scale=cross_scale, in_scale=in_scale)
    with pytest.raises(ValueError, match=needed):
        model(torch.zeros(()).double().expand(1, 3, *size))
    model.check_size(360, 360)


def test_scale_4_counts_both_steps() -> None:
    assert network(4, "exact").cell.score_count(10, 6) == 60 * 15 + 240 * 60
    assert network(4, "psal3").cell.score_count(10**4, 10**4) == 0
