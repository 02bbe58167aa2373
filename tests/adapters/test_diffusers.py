"""Patch attention inside small random models of diffusers, against diffusers' own and against all scores."""

import copy
from typing import Any

import pytest
import torch
from diffusers import AutoencoderKL, DiTTransformer2DModel, UNet2DConditionModel, UNet2DModel, UNet3DConditionModel
from diffusers.models.attention_processor import Attention, AttnProcessor2_0, SlicedAttnProcessor
from support.tolerances import assert_all_close, assert_close, assert_same_bits
from support.top_k import EXACT_IN_PRACTICE, top_k_attention
from torch import Tensor, nn

from psal.adapters.diffusers import PatchAttnProcessor, level_grid, swap_attention_, swapped_attention

ALWAYS: dict[str, Any] = {"min_tokens": 0, **EXACT_IN_PRACTICE}
SELF_ATTENTION = [
    "down_blocks.0.attentions.0.transformer_blocks.0.attn1",
    "up_blocks.1.attentions.0.transformer_blocks.0.attn1",
    "up_blocks.1.attentions.1.transformer_blocks.0.attn1",
    "mid_block.attentions.0.transformer_blocks.0.attn1",
]


def unet() -> UNet2DConditionModel:
    """Two levels with two heads: self-attention at the first level and in the middle, at the second."""
    torch.manual_seed(0)
    return UNet2DConditionModel(
        in_channels=3,
        out_channels=3,
        block_out_channels=(8, 16),
        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
        layers_per_block=1,
        cross_attention_dim=6,
        attention_head_dim=2,
        norm_num_groups=4,
    ).eval()


def run(model: nn.Module, height: int = 7, width: int = 10) -> Tensor:
    """Call a conditional UNet with a random latent: 70 tokens at the first level, 4 × 5 = 20 at the second."""
    generator = torch.Generator().manual_seed(1)
    latent = torch.randn(2, 3, height, width, generator=generator)
    text = torch.randn(2, 5, 6, generator=generator)
    out: Tensor = model(latent, 3, text).sample
    return out


class TopKProcessor:
    """Top-k attention with the matrix of all scores; cross-attention as diffusers does it."""

    def __init__(self, k: int) -> None:
        self.k = k

    def __call__(
        self,
        attn: Attention,
        hidden_states: Tensor,
        encoder_hidden_states: Tensor | None = None,
        attention_mask: None = None,
    ) -> Tensor:
        if encoder_hidden_states is not None:
            full: Tensor = AttnProcessor2_0()(attn, hidden_states, encoder_hidden_states)
            return full
        projected = [layer(hidden_states) for layer in (attn.to_q, attn.to_k, attn.to_v)]
        query, key, value = (x.unflatten(2, (attn.heads, -1)).transpose(1, 2) for x in projected)
        attended = top_k_attention(query, key, value, self.k, query.shape[3] ** -0.5)
        out: Tensor = attn.to_out[0](attended.transpose(1, 2).flatten(2))
        return out


def projections(model: nn.Module) -> dict[str, nn.Parameter]:
    """Weights of the projections of query, key and value in self-attention."""
    wanted = tuple(f"attn1.{projection}.weight" for projection in ("to_q", "to_k", "to_v"))
    return {name: weight for name, weight in model.named_parameters() if name.endswith(wanted)}


def map_size(model: nn.Module, name: str) -> tuple[int, int]:
    """Size of the map that a swapped layer recorded last."""
    processor: Any = model.get_submodule(name).processor
    height, width = processor.size()
    return height, width


def gradients(model: nn.Module) -> list[Tensor]:
    return list(torch.autograd.grad(run(model).square().sum(), list(projections(model).values())))


@pytest.mark.parametrize(("level", "tokens"), [("down_blocks", 70), ("up_blocks", 70), ("mid_block", 20)])
def test_with_all_keys_a_unet_computes_the_same(level: str, tokens: int) -> None:
    model = unet()
    expected = run(model)
    names = swap_attention_(
        model, lambda module, name: "attn1" in name and level in name, neighbors=tokens, min_tokens=0
    )
    assert names == [name for name in SELF_ATTENTION if level in name]
    assert_close(run(model), expected)


def test_with_few_keys_a_unet_computes_top_k_attention() -> None:
    model, expected = unet(), unet()
    expected.set_attn_processor(TopKProcessor(4))
    assert swap_attention_(model, neighbors=4, **ALWAYS) == SELF_ATTENTION
    assert_close(run(model), run(expected))
    assert not run(model).allclose(run(unet()), atol=1e-4)


def test_gradients_reach_all_projections() -> None:
    model, expected = unet(), unet()
    expected.set_attn_processor(TopKProcessor(4))
    swap_attention_(model, neighbors=4, **ALWAYS)
    found = gradients(model)
    assert all(x.abs().max() > 0 for x in found)
    assert_all_close(found, gradients(expected), list(projections(model)))


def test_gradient_checkpointing_gives_the_same_gradients() -> None:
    model = unet().train()
    swap_attention_(model, neighbors=4, min_tokens=0, iterations=0)  # with an own seed in each call
    torch.manual_seed(0)
    expected = gradients(model)
    model.enable_gradient_checkpointing()
    torch.manual_seed(0)
    assert_all_close(gradients(model), expected, list(projections(model)))


@pytest.mark.parametrize(("height", "width"), [(7, 10), (8, 4), (9, 15), (1, 30)])
def test_each_layer_knows_the_size_of_its_map(height: int, width: int) -> None:
    model = unet()
    swap_attention_(model)
    run(model, height, width)
    sizes = [map_size(model, name) for name in SELF_ATTENTION]
    assert sizes == [(height, width)] * 3 + [(-(-height // 2), -(-width // 2))]


def test_one_processor_with_the_size_of_the_latent_serves_a_unet() -> None:
    model, expected = unet(), unet()
    expected.set_attn_processor(TopKProcessor(4))
    model.set_attn_processor(PatchAttnProcessor((7, 10), neighbors=4, **ALWAYS))
    assert_close(run(model), run(expected))


def test_a_unet_without_text_attends_on_maps() -> None:
    torch.manual_seed(0)
    model = UNet2DModel(
        in_channels=3,
        out_channels=3,
        block_out_channels=(8, 16),
        down_block_types=("AttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "AttnUpBlock2D"),
        layers_per_block=1,
        attention_head_dim=4,
        norm_num_groups=4,
        downsample_type="conv",
    ).eval()
    latent = torch.randn(2, 3, 6, 10)
    expected = model(latent, 3).sample
    with swapped_attention(model, neighbors=60, min_tokens=0) as names:
        assert_close(model(latent, 3).sample, expected)
    assert len(names) == 4
    with swapped_attention(model, neighbors=15, min_tokens=0):
        assert not model(latent, 3).sample.allclose(expected, atol=1e-4)


def test_an_autoencoder_attends_on_maps() -> None:
    model = AutoencoderKL(
        block_out_channels=(8, 8),
        down_block_types=("DownEncoderBlock2D",) * 2,
        up_block_types=("UpDecoderBlock2D",) * 2,
        norm_num_groups=4,
    ).eval()
    picture = torch.randn(1, 3, 18, 22)
    expected = model(picture).sample
    assert swap_attention_(model, neighbors=99, min_tokens=0) == [
        "encoder.mid_block.attentions.0",
        "decoder.mid_block.attentions.0",
    ]
    assert_close(model(picture).sample, expected)


def test_a_video_model_attends_within_frames_and_keeps_attention_across_them() -> None:
    torch.manual_seed(0)
    model = UNet3DConditionModel(
        in_channels=3,
        out_channels=3,
        block_out_channels=(8, 16),
        down_block_types=("CrossAttnDownBlock3D", "DownBlock3D"),
        up_block_types=("UpBlock3D", "CrossAttnUpBlock3D"),
        layers_per_block=1,
        cross_attention_dim=6,
        attention_head_dim=4,
        norm_num_groups=4,
    ).eval()
    arguments = torch.randn(1, 3, 3, 7, 10), 3, torch.randn(1, 5, 6)
    expected = model(*arguments).sample
    with swapped_attention(model, neighbors=70):
        assert_same_bits(model(*arguments).sample, expected)
    with swapped_attention(model, neighbors=70, min_tokens=0):
        assert_close(model(*arguments).sample, expected)
    with (
        swapped_attention(model, neighbors=2, min_tokens=0),
        pytest.raises(ValueError, match="3 tokens are not the pixels of a map"),
    ):
        model(*arguments)


def test_a_transformer_on_patches_of_the_latent_has_half_its_grid() -> None:
    torch.manual_seed(0)
    model = DiTTransformer2DModel(
        num_attention_heads=2,
        attention_head_dim=4,
        in_channels=3,
        out_channels=3,
        num_layers=2,
        norm_num_groups=4,
        sample_size=10,
        num_embeds_ada_norm=4,
    ).eval()
    arguments = {"timestep": torch.tensor([3]), "class_labels": torch.tensor([1])}
    latent = torch.randn(1, 3, 10, 10)
    expected = model(latent, **arguments).sample
    assert len(swap_attention_(model, neighbors=25, min_tokens=0)) == 2
    assert_close(model(**arguments, hidden_states=latent).sample, expected)


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"norm_num_groups": 2, "residual_connection": True, "rescale_output_factor": 1.5},
        {"spatial_norm_dim": 3, "bias": True},
        {"qk_norm": "layer_norm", "out_bias": False},
        {"scale_qk": False},
    ],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_all_parts_of_an_attention_module_are_used(arguments: dict[str, Any], dtype: torch.dtype) -> None:
    layer = Attention(32, heads=2, dim_head=4, **arguments).to(dtype).eval()
    x, temb = torch.randn(2, 32, 5, 7).to(dtype), torch.randn(2, 3, 5, 7).to(dtype)
    expected = layer(x, temb=temb)
    layer.set_processor(PatchAttnProcessor((5, 7), layer.processor, neighbors=35, min_tokens=0))
    assert_close(layer(x, temb=temb), expected)


def test_cross_attention_keeps_its_processors() -> None:
    model = unet()
    before = model.attn_processors
    swap_attention_(model)
    changed = [name for name, processor in model.attn_processors.items() if processor is not before[name]]
    assert sorted(changed) == sorted(f"{name}.processor" for name in SELF_ATTENTION)


def test_few_tokens_are_left_to_the_former_processor() -> None:
    model = unet()
    model.set_attn_processor({name: SlicedAttnProcessor(1) for name in model.attn_processors})
    expected = run(model)
    with swapped_attention(model, neighbors=4, min_tokens=71):
        assert_same_bits(run(model), expected)
    with swapped_attention(model, neighbors=71, min_tokens=0):
        assert_same_bits(run(model), expected)
    with swapped_attention(model, neighbors=4, min_tokens=70):
        assert not run(model).equal(expected)


def test_processors_and_hooks_are_restored_after_the_block() -> None:
    model = unet()
    before, expected = model.attn_processors, run(model)
    with swapped_attention(model, neighbors=4, min_tokens=0):
        assert not run(model).equal(expected)
    assert model.attn_processors == before
    with pytest.raises(ZeroDivisionError), swapped_attention(model):
        _ = 1 / 0
    assert model.attn_processors == before
    assert not any(module._forward_pre_hooks for module in model.modules())
    assert_same_bits(run(model), expected)


def test_swapping_again_replaces_the_options() -> None:
    model, expected = unet(), unet()
    swap_attention_(model, neighbors=2, min_tokens=0)
    hooks = sum(len(module._forward_pre_hooks) for module in model.modules())
    assert swap_attention_(model, neighbors=4, **ALWAYS) == SELF_ATTENTION
    assert sum(len(module._forward_pre_hooks) for module in model.modules()) == hooks
    assert isinstance(model.get_submodule(SELF_ATTENTION[0]).processor.former, AttnProcessor2_0)
    expected.set_attn_processor(TopKProcessor(4))
    assert_close(run(model), run(expected))


def test_a_copied_model_records_its_own_sizes() -> None:
    model = unet()
    swap_attention_(model, neighbors=4, **ALWAYS)
    expected = run(model)
    other = copy.deepcopy(model)
    run(other, 10, 7)
    assert map_size(model, SELF_ATTENTION[0]) == (7, 10)
    assert map_size(other, SELF_ATTENTION[0]) == (10, 7)
    assert_same_bits(run(model), expected)


@pytest.mark.parametrize(("tokens", "grid"), [(135, (9, 15)), (40, (5, 8)), (12, (3, 4)), (4, (2, 2)), (1, (1, 1))])
def test_levels_round_up(tokens: int, grid: tuple[int, int]) -> None:
    assert level_grid((9, 15), tokens) == grid


def test_tokens_of_no_level_are_refused() -> None:
    model = unet()
    model.set_attn_processor(PatchAttnProcessor((7, 9), neighbors=4, min_tokens=0))
    with pytest.raises(ValueError, match=r"70 tokens are not the pixels of a map of \(7, 9\) or its halves: give"):
        run(model)


def test_a_mask_in_self_attention_is_refused() -> None:
    layer = Attention(8, heads=2, dim_head=4, processor=PatchAttnProcessor((5, 7), neighbors=4, min_tokens=0))
    with pytest.raises(ValueError, match=r"no attention_mask in self-attention, got one of shape \(1, 35\): leave"):
        layer(torch.randn(1, 35, 8), attention_mask=torch.zeros(1, 35))


def test_a_layer_without_a_map_around_it_is_refused() -> None:
    model = unet()
    swap_attention_(model, neighbors=4, min_tokens=0)
    with pytest.raises(ValueError, match=r"no module around this layer is given a map \(B, C, H, W\): leave it out"):
        model.get_submodule(SELF_ATTENTION[0])(torch.randn(1, 35, 8))


def test_a_pipeline_is_refused() -> None:
    with pytest.raises(TypeError, match=r"model must be a module, such as pipe\.unet of a pipeline, got object"):
        swap_attention_(object())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"neighbors": 0}, ValueError, "neighbors must be at least 1, got 0"),
        ({"min_tokens": -1}, ValueError, "min_tokens must be at least 0, got -1"),
        ({"init": "best"}, ValueError, "init must be one of 'random', 'tree', got 'best'"),
        ({"patch_size": 3}, TypeError, "unexpected keyword argument 'patch_size'"),
    ],
)
def test_wrong_options_are_named_before_anything_is_swapped(
    arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    model = unet()
    before = model.attn_processors
    with pytest.raises(error, match=message):
        swap_attention_(model, **arguments)
    assert model.attn_processors == before


def test_a_wrong_size_is_named() -> None:
    with pytest.raises(ValueError, match=r"size must be \(height, width\), got \(7,\)"):
        PatchAttnProcessor((7,))


def test_nothing_to_swap_is_a_warning_at_the_callers_line() -> None:
    model = unet()
    with pytest.warns(UserWarning, match="no attention layer was swapped") as warned:
        assert swap_attention_(model, lambda module, name: False) == []
    with (
        pytest.warns(UserWarning, match="no attention layer was swapped") as warned_too,
        swapped_attention(model, lambda module, name: False),
    ):
        pass
    assert warned[0].filename == warned_too[0].filename == __file__
