"""Patch attention inside small random vision transformers, against transformers' own and against all scores."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from support.tolerances import assert_all_close, assert_close, assert_same_bits
from support.top_k import EXACT_IN_PRACTICE, top_k_attention
from torch import Tensor, nn
from transformers import (
    AttentionInterface,
    CLIPConfig,
    CLIPModel,
    CLIPTextConfig,
    CLIPTextModel,
    Dinov2Config,
    Dinov2Model,
    Dinov2WithRegistersConfig,
    Dinov2WithRegistersModel,
    DINOv3ViTConfig,
    DINOv3ViTModel,
    PreTrainedModel,
    SiglipVisionConfig,
    SiglipVisionModel,
    ViTConfig,
    ViTModel,
)

from psal.adapters.transformers import register

ALWAYS: dict[str, Any] = {"min_tokens": 0, **EXACT_IN_PRACTICE}
SMALL: dict[str, Any] = {
    "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24, "patch_size": 4
}  # fmt: skip
VIT, DINO, REGISTERS, ROTARY, SIGLIP = "ViT", "DINOv2", "DINOv2 with registers", "DINOv3", "SigLIP"
MODELS = (VIT, DINO, REGISTERS, ROTARY, SIGLIP)
PREFIX_TOKENS = {VIT: 1, DINO: 1, REGISTERS: 4, ROTARY: 5, SIGLIP: 0}
GRID = (5, 7)


def model(name: str, **arguments: Any) -> PreTrainedModel:
    torch.manual_seed(0)
    made: PreTrainedModel
    if name == VIT:
        made = ViTModel(ViTConfig(**SMALL, image_size=28, **arguments))
    elif name == DINO:
        made = Dinov2Model(Dinov2Config(**SMALL, image_size=28, **arguments))
    elif name == REGISTERS:
        made = Dinov2WithRegistersModel(Dinov2WithRegistersConfig(**SMALL, image_size=28, num_register_tokens=3))
    elif name == ROTARY:
        made = DINOv3ViTModel(DINOv3ViTConfig(**SMALL, image_size=28, num_register_tokens=4))
    else:
        made = SiglipVisionModel(SiglipVisionConfig(**SMALL, image_size=28))
    with torch.no_grad():
        for layer in projections(made).values():
            layer.weight.normal_(std=0.4)  # initial weights are small: all keys would weigh the same
    return made.eval()


def run(network: PreTrainedModel, grid: tuple[int, int] = GRID) -> Tensor:
    """Call a network with a random picture of a grid of patches."""
    picture = torch.randn(2, 3, 4 * grid[0], 4 * grid[1], generator=torch.Generator().manual_seed(1))
    arguments = {"interpolate_pos_encoding": True} if isinstance(network, (ViTModel, SiglipVisionModel)) else {}
    out: Tensor = network(picture, **arguments).last_hidden_state
    return out


def projections(network: nn.Module) -> dict[str, nn.Linear]:
    """Projections of query, key and value."""
    wanted = ("q_proj", "k_proj", "v_proj")
    return {name: x for name, x in network.named_modules() if name.endswith(wanted) and isinstance(x, nn.Linear)}


def gradients(network: PreTrainedModel) -> list[Tensor]:
    weights = [layer.weight for layer in projections(network).values()]
    return list(torch.autograd.grad(run(network).square().mul(torch.arange(16.0)).sum(), weights))


def register_top_k(name: str, k: int) -> None:
    """Register top-k attention with the matrix of all scores, for a model by name."""

    def top_k(
        module: nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: None, scaling: float, **_: Any
    ) -> tuple[Tensor, None]:
        out = top_k_attention(query, key, value, k, scaling, PREFIX_TOKENS[name])
        return out.transpose(1, 2), None

    AttentionInterface.register("top_k", top_k)


@pytest.mark.parametrize("name", MODELS)
def test_with_all_keys_a_model_computes_the_same(name: str) -> None:
    network = model(name)
    expected = run(network)
    register(grid=GRID, prefix_tokens=PREFIX_TOKENS[name], neighbors=35, min_tokens=0)
    network.set_attn_implementation("psal")
    assert_close(run(network), expected)


@pytest.mark.parametrize("name", MODELS)
def test_with_few_keys_a_model_computes_top_k_attention(name: str) -> None:
    network = model(name)
    full = run(network)
    register_top_k(name, 4)
    network.set_attn_implementation("top_k")
    expected = run(network)
    register(grid=GRID, prefix_tokens=PREFIX_TOKENS[name], neighbors=4, **ALWAYS)
    network.set_attn_implementation("psal")
    assert_close(run(network), expected)
    assert not expected.allclose(full, atol=1e-3)


@pytest.mark.parametrize("name", MODELS)
def test_gradients_reach_the_projections(name: str) -> None:
    network = model(name)
    register_top_k(name, 4)
    network.set_attn_implementation("top_k")
    expected = gradients(network)
    register(grid=GRID, prefix_tokens=PREFIX_TOKENS[name], neighbors=4, **ALWAYS)
    network.set_attn_implementation("psal")
    found = gradients(network)
    assert len(found) == 6
    assert all(x.abs().max() > 0 for x in found)
    assert_all_close(found, expected, list(projections(network)))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_prefix_and_patches_share_one_softmax_in_every_type(dtype: torch.dtype) -> None:
    query, key, value = (10 * torch.randn(3, 1, 2, 40, 6)).to(dtype)  # sharp: scores of some hundred
    register(grid=GRID, prefix_tokens=5, neighbors=35, min_tokens=0)
    out, weights = AttentionInterface()["psal"](nn.Identity(), query, key, value, None, is_causal=False)
    assert weights is None
    assert_close(out, F.scaled_dot_product_attention(query, key, value).transpose(1, 2))


def test_without_a_grid_the_patches_are_a_square() -> None:
    network = model(VIT)
    expected = run(network, (6, 6))
    register("psal-square", neighbors=36, min_tokens=0)
    network.set_attn_implementation("psal-square")
    assert_close(run(network, (6, 6)), expected)
    register("psal-square", neighbors=4, min_tokens=0)
    with pytest.raises(ValueError, match="35 patch tokens behind 1 prefix tokens are not a square: register with grid"):
        run(network)


def test_another_grid_is_refused() -> None:
    register(grid=GRID, neighbors=4, min_tokens=0)
    network = model(VIT)
    network.set_attn_implementation("psal")
    with pytest.raises(
        ValueError, match=r"42 patch tokens behind 1 prefix tokens are not a grid of \(5, 7\): register"
    ):
        run(network, (6, 7))
    register(grid=(6, 7), neighbors=4, min_tokens=0)
    assert run(network, (6, 7)).isfinite().all()


@pytest.mark.parametrize("options", [{"neighbors": 4}, {"neighbors": 36, "min_tokens": 0}])
def test_few_tokens_are_left_to_sdpa(options: dict[str, Any]) -> None:
    register(**options)
    network = model(VIT)
    network.set_attn_implementation("sdpa")
    expected = run(network)
    network.set_attn_implementation("psal")
    assert_same_bits(run(network), expected)


def test_masks_causality_and_padding_of_short_texts_are_left_to_sdpa_and_of_long_ones_refused() -> None:
    torch.manual_seed(0)
    config = CLIPTextConfig(
        vocab_size=20, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=24,
        max_position_embeddings=12, eos_token_id=19,
    )  # fmt: skip
    network = CLIPTextModel(config).eval()
    text = torch.randint(19, (2, 10))
    mask = torch.ones_like(text)
    mask[0, 6:] = 0
    expected = network(text, attention_mask=mask).last_hidden_state
    register(neighbors=4)
    network.set_attn_implementation("psal")
    assert_close(network(text, attention_mask=mask).last_hidden_state, expected)
    register(neighbors=4, min_tokens=0)
    with pytest.raises(ValueError, match="psal has no causal attention: set it for the vision model alone"):
        network(text)


def test_the_vision_half_of_a_model_of_pictures_and_texts_can_be_set_alone() -> None:
    torch.manual_seed(0)
    text_config = SMALL | {"vocab_size": 20, "max_position_embeddings": 12, "bos_token_id": 18, "eos_token_id": 19}
    network = CLIPModel(CLIPConfig(text_config=text_config, vision_config=SMALL | {"image_size": 24})).eval()
    inputs = torch.randint(19, (1, 10)), torch.randn(1, 3, 24, 24)
    expected = network(*inputs).image_embeds
    register(neighbors=36, min_tokens=0)
    network.set_attn_implementation({"vision_config": "psal"})
    assert_close(network(*inputs).image_embeds, expected)
    register(neighbors=2, min_tokens=0)
    assert not network(*inputs).image_embeds.equal(expected)


def test_attention_weights_as_an_output_are_refused() -> None:
    register(neighbors=4, min_tokens=0)
    network = model(VIT)
    network.set_attn_implementation("psal")
    with pytest.raises(ValueError, match="psal has no softcap and returns no attention weights: use 'eager'"):
        network(torch.randn(1, 3, 28, 28), output_attentions=True)


def test_a_mask_is_refused() -> None:
    register(grid=GRID, neighbors=4, min_tokens=0)
    network = model(VIT)
    network.set_attn_implementation("psal")
    mask = torch.ones(2, 36)
    mask[0, 3:] = 0
    with pytest.raises(ValueError, match="psal takes no attention mask or position bias"):
        network(torch.randn(2, 3, 20, 28), attention_mask=mask, interpolate_pos_encoding=True)


def test_attention_dropout_is_refused_in_training_alone() -> None:
    register(grid=GRID, neighbors=4, min_tokens=0)
    network = model(VIT, attention_probs_dropout_prob=0.1)
    network.set_attn_implementation("psal")
    run(network)
    with pytest.raises(ValueError, match=r"psal has no attention dropout, got 0\.1: call model\.eval\(\), or set"):
        run(network.train())


def test_cross_attention_is_refused() -> None:
    register(grid=GRID, neighbors=4, min_tokens=0)
    query, key = torch.randn(1, 2, 36, 4), torch.randn(1, 2, 30, 4)
    with pytest.raises(ValueError, match=r"psal takes self-attention .* got query \(1, 2, 36, 4\) and key"):
        AttentionInterface()["psal"](nn.Identity(), query, key, key, None, is_causal=False)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"grid": (5, 7, 2)}, ValueError, r"grid must be \(H, W\), got \(5, 7, 2\)"),
        ({"grid": (5, 0)}, ValueError, "a side of the grid must be at least 1, got 0"),
        ({"prefix_tokens": -1}, ValueError, "prefix_tokens must be at least 0, got -1"),
        ({"neighbors": 0}, ValueError, "neighbors must be at least 1, got 0"),
        ({"aggregate": True}, TypeError, "unexpected keyword argument 'aggregate'"),
    ],
)
def test_wrong_arguments_are_named(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        register(**arguments)
