"""The inpainting network before training."""

import pytest
import torch
from support.tolerances import assert_close, assert_same_bits
from torch import Tensor, nn

import psal
from psal.models.inpainting import ContextualAttention, Discriminators, Generator
from psal.models.inpainting.attentions import build_inpainting_attention
from psal.models.inpainting.generator import known_features

NAMES = ["contextual", "contextual-materialized", "psal3", "psal1"]


def example(height: int = 36, width: int = 44, batch: int = 1) -> tuple[Tensor, Tensor]:
    image = torch.rand(batch, 3, height, width) * 2 - 1
    hole = torch.zeros(batch, 1, height, width, dtype=torch.bool)
    hole[..., 12:21, 15:30] = True
    return image, hole


def network(name: str, width: int = 4) -> Generator:
    torch.manual_seed(0)
    return Generator(None if name == "none" else build_inpainting_attention(name, seed=0), width)


@pytest.mark.parametrize("name", [*NAMES, "none"])
def test_both_stages_return_pictures_of_the_given_size(name: str) -> None:
    image, hole = example(batch=2)
    for picture in network(name)(image, hole):
        assert picture.shape == image.shape
        assert picture.abs().max() <= 1


@pytest.mark.parametrize("name", [*NAMES, "none"])
def test_pixels_in_the_hole_are_not_seen(name: str) -> None:
    image, hole = example()
    model = network(name).eval()
    other = torch.where(hole, torch.rand_like(image), image)
    for a, b in zip(model(image, hole), model(other, hole), strict=True):
        assert_same_bits(a, b)


def test_the_paper_s_width_has_the_published_number_of_weights() -> None:
    """Layer table of Yu et al.: (kernel², in, out) of the coarse and the refinement network."""
    same, halved = (9, 128, 128), (9, 128, 64)
    decoder = [same, halved, (9, 64, 64), (9, 64, 32), (9, 32, 16), (9, 16, 3)]
    coarse = [(25, 5, 32), (9, 32, 64), (9, 64, 64), (9, 64, 128), *[same] * 7, *decoder]
    branch = [(25, 5, 32), (9, 32, 32), (9, 32, 64)]
    plain = [*branch, (9, 64, 64), (9, 64, 128), *[same] * 5]
    attended = [*branch, (9, 64, 128), *[same] * 4]
    layers = [*coarse, *plain, *attended, (9, 256, 128), *decoder]
    expected = sum(kernel * channels * out + out for kernel, channels, out in layers)
    assert sum(x.numel() for x in Generator(ContextualAttention()).parameters()) == expected


@pytest.mark.parametrize("name", ["psal3", "contextual"])
def test_gradients_reach_every_parameter(name: str) -> None:
    image, hole = example()
    model = network(name)
    coarse, refined = model(image, hole)
    ((coarse - image).abs().mean() + (refined - image).abs().mean()).backward()
    for parameter, x in model.named_parameters():
        assert x.grad is not None, parameter
        assert x.grad.abs().sum() > 0, parameter


class DetachedValue(nn.Module):
    """An attention layer whose values get no gradient."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, query: Tensor, key: Tensor, value: Tensor, key_mask: Tensor) -> Tensor:
        out: Tensor = self.layer(query, key, value.detach(), key_mask=key_mask)
        return out


@pytest.mark.parametrize(("name", "reaches"), [("psal1", False), ("psal3", True)])
def test_with_one_neighbor_layers_before_the_attention_learn_through_the_values_alone(name: str, reaches: bool) -> None:
    image, hole = example()
    for wrapped in (False, True):
        model = network(name)
        branch = model.refinement.attention_branch
        assert branch is not None
        if wrapped:
            branch.attention = DetachedValue(branch.attention)
        (model(image, hole)[1] - image).abs().mean().backward()
        for x in branch.encoder.parameters():
            learns = x.grad is not None and bool(x.grad.abs().sum() > 0)
            assert learns == (reaches or not wrapped)


def test_psal_takes_the_place_of_contextual_attention() -> None:
    image, hole = example()
    model = network("contextual").eval()
    before = model(image, hole)
    layer = psal.PatchAttention(patch_size=7, neighbors=3, iterations=5)
    with psal.swapped_attention(model, layer) as names:
        assert names == ["refinement.attention_branch.attention"]
        coarse, refined = model(image, hole)
    assert_same_bits(coarse, before[0])  # the attention is in the second stage
    assert not refined.equal(before[1])
    for a, b in zip(model(image, hole), before, strict=True):
        assert_same_bits(a, b)


def test_keys_of_psal_are_outside_the_hole() -> None:
    image, hole = example()
    seen: list[Tensor] = []
    model = network("psal3")
    branch = model.refinement.attention_branch
    assert branch is not None
    branch.attention.register_forward_pre_hook(
        lambda _, maps, options: seen.append(options["key_mask"]), with_kwargs=True
    )
    model(image, hole)
    [mask] = seen
    assert mask.shape == (1, 1, 9, 11)
    assert not mask[..., 3:6, 3:8].any()  # rows 12 to 20 and columns 15 to 29, in cells of 4
    assert mask.sum() == 9 * 11 - 3 * 5


def test_a_thin_hole_between_sampled_pixels_is_noticed() -> None:
    hole = torch.zeros(1, 1, 16, 16, dtype=torch.bool)
    hole[..., 6, :] = True
    assert known_features(hole)[0, 0, :, 0].tolist() == [True, False, True, True]


def test_an_output_does_not_depend_on_the_rest_of_the_batch() -> None:
    image, hole = example(batch=2)
    hole[1] = hole[1].roll(5, 1)
    model = network("contextual").eval()
    both = model(image, hole)[1]
    for number in range(2):
        assert_close(both[number : number + 1], model(image[number : number + 1], hole[number : number + 1])[1])


@pytest.mark.parametrize(
    ("image", "hole", "error", "message"),
    [
        (torch.rand(1, 3, 18, 16), torch.zeros(1, 1, 18, 16, dtype=torch.bool), ValueError, "multiples of 4, got"),
        (torch.rand(1, 1, 16, 16), torch.zeros(1, 1, 16, 16, dtype=torch.bool), ValueError, r"\(B, 3, H, W\)"),
        (torch.rand(1, 3, 16, 16), torch.zeros(1, 1, 16, 20, dtype=torch.bool), ValueError, "hole must have shape"),
        (torch.rand(1, 3, 16, 16), torch.zeros(1, 1, 16, 16), TypeError, "hole must be a bool tensor"),
    ],
)
def test_wrong_inputs_are_named(image: Tensor, hole: Tensor, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        network("psal3")(image, hole)


def test_a_hole_that_leaves_too_few_keys_is_refused() -> None:
    image, hole = example()
    with pytest.raises(ValueError, match="key_mask leaves no key"):
        network("psal3")(image, torch.ones_like(hole))


def test_an_odd_width_is_refused() -> None:
    with pytest.raises(ValueError, match="width must be even, got 5"):
        Generator(ContextualAttention(), 5)
    with pytest.raises(ValueError, match="there is no attention named 'psal0' for inpainting: choose from contextual"):
        build_inpainting_attention("psal0")


@pytest.mark.parametrize(("size", "window"), [(64, 32), (52, 23)])
def test_each_critic_scores_its_own_picture(size: int, window: int) -> None:
    critic = Discriminators(size, window, width=4)
    picture, part = torch.rand(2, 3, size, size), torch.rand(2, 3, window, window)
    scores = critic(picture, part)
    assert scores.shape == (2, 2)
    other = critic(picture, part + 1)
    assert_close(other[:, 0], scores[:, 0])
    assert not other[:, 1].allclose(scores[:, 1])
