"""Known pixels stay, and the hole continues the rest of the picture."""

from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from support.holes import box_mask
from torch import Tensor

import psal
from psal.io.metadata import Metadata


@pytest.fixture
def restored_default_type() -> Iterator[None]:
    """Restore torch's default type after a test that changes it."""
    before = torch.get_default_dtype()
    yield
    torch.set_default_dtype(before)


def waves(height: int, width: int) -> Tensor:
    """Picture ``[3, H, W]`` with periods of 8 pixels across and 12 down."""
    y, x = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    across, down = torch.sin(x * (2 * torch.pi / 8)), torch.sin(y * (2 * torch.pi / 12))
    return torch.stack([across, down, across * down]) * 0.4 + 0.5


@pytest.mark.parametrize(
    "boxes",
    [
        [(30, 50, 40, 61)],
        [(30, 31, 40, 41)],
        [(0, 17, 0, 15)],
        [(70, 87, 90, 103), (3, 11, 2, 60)],
        [(40, 43, 0, 103)],
        [(10, 30, 10, 30), (32, 50, 32, 50), (60, 80, 70, 100)],
    ],
    ids=["inside", "one pixel", "corner", "two at borders", "from side to side", "three"],
)
def test_periodic_texture_is_continued_and_the_rest_unchanged(boxes: list[tuple[int, int, int, int]]) -> None:
    image, hole = waves(87, 103), box_mask(87, 103, *boxes)
    filled = psal.inpaint(image, hole, seed=0)
    assert filled[:, ~hole].equal(image[:, ~hole])
    assert (filled - image)[:, hole].square().mean() < 1e-3


@pytest.mark.parametrize(("width", "box"), [(1, (30, 90, 10, 70)), (2, (50, 110, 10, 150))], ids=["fine", "wide hole"])
def test_stripes_keep_their_direction(width: int, box: tuple[int, int, int, int]) -> None:
    """Both halves have the same mean color and the same contrast: at coarse levels only the direction tells."""
    y, x = torch.meshgrid(torch.arange(160), torch.arange(160), indexing="ij")
    image = ((x // width % 2).where(x < 80, y // width % 2)).float().expand(3, -1, -1).contiguous()
    hole = box_mask(160, 160, box)
    filled = psal.inpaint(image, hole, seed=0)
    assert (filled - image)[:, hole].abs().mean() < 0.03


def test_constant_picture_stays_constant() -> None:
    image = torch.full((3, 41, 37), 0.3)
    filled = psal.inpaint(image, box_mask(41, 37, (10, 30, 8, 25)), seed=0)
    torch.testing.assert_close(filled, image, rtol=0, atol=1e-5)


def test_brightness_gradient_continues_in_the_hole() -> None:
    """No other position has the same brightness, so copied patches must be corrected."""
    y, x = torch.meshgrid(torch.linspace(0, 1, 80), torch.linspace(0, 1, 90), indexing="ij")
    grain = torch.rand(1, 80, 90, generator=torch.Generator().manual_seed(0)) * 0.02
    image, hole = 0.2 + 0.6 * x * y + grain, box_mask(80, 90, (30, 60, 35, 70))
    filled = psal.inpaint(image, hole, seed=0)
    assert (filled - image)[:, hole].square().mean().sqrt() < 0.015


def test_a_shadow_at_the_hole_does_not_turn_to_smoke() -> None:
    grain = torch.randn(3, 97, 131, generator=torch.Generator().manual_seed(0)) * 0.008
    image = torch.where(box_mask(97, 131, (55, 80, 60, 75)), 0.15, 0.7) + grain
    hole = box_mask(97, 131, (25, 70, 45, 95))
    filled = psal.inpaint(image, hole, seed=0).mean(0)[hole]
    assert ((filled > 0.25) & (filled < 0.6)).float().mean() < 0.02


def test_different_shades_of_a_smooth_surface_leave_no_seam() -> None:
    ramp = torch.linspace(0, 1, 131).expand(3, 97, -1)
    image = ramp + torch.randn(3, 97, 131, generator=torch.Generator().manual_seed(0)) * 0.006
    hole = box_mask(97, 131, (0, 97, 45, 85))
    filled = psal.inpaint(image.clamp(0, 1), hole, seed=0)
    assert filled.diff(dim=2)[:, :, 44:86].abs().max() < 0.08


def test_another_default_type_of_torch_is_not_taken_over(restored_default_type: None) -> None:
    image, hole = waves(47, 53), box_mask(47, 53, (10, 20, 15, 30))
    torch.set_default_dtype(torch.float64)
    filled, shifts = psal.inpaint(image, hole, seed=0, return_shifts=True)
    opaque = psal.inpaint(torch.cat([image, (~hole)[None].float()]), None, seed=0)
    assert filled.dtype == opaque.dtype == torch.float32
    assert shifts.opacity.dtype == np.float32
    assert opaque[3].eq(1).all()


def test_the_result_of_a_permuted_tensor_is_contiguous() -> None:
    image, hole = waves(47, 53).permute(1, 2, 0).contiguous().permute(2, 0, 1), box_mask(47, 53, (10, 20, 15, 30))
    assert psal.inpaint(image, hole, seed=0).is_contiguous()


def test_rough_surface_stays_rough_next_to_a_smooth_one_of_its_color() -> None:
    noise = torch.rand(1, 96, 160, generator=torch.Generator().manual_seed(0)) * 0.6 - 0.3
    noise[:, :, 70:] = 0
    image, hole = 0.5 + noise, box_mask(96, 160, (30, 60, 25, 55))
    filled = psal.inpaint(image, hole, seed=0)
    assert filled[:, hole].var() > 0.7 * image[:, hole].var()


@pytest.mark.parametrize("content", [0.0, 1.0])
def test_values_in_the_hole_are_ignored(content: float) -> None:
    image, hole = torch.rand(3, 53, 61, generator=torch.Generator().manual_seed(0)), box_mask(53, 61, (20, 38, 25, 50))
    other = image.clone()
    other[:, hole] = content
    assert psal.inpaint(other, hole, seed=3).equal(psal.inpaint(image, hole, seed=3))


def test_same_seed_same_bits_on_any_thread_count() -> None:
    image, hole = torch.rand(3, 70, 65, generator=torch.Generator().manual_seed(1)), box_mask(70, 65, (20, 45, 25, 50))
    threads = torch.get_num_threads()
    try:
        results = []
        for count in (1, 2, 3):
            torch.set_num_threads(count)
            results.append(psal.inpaint(image, hole, seed=7))
    finally:
        torch.set_num_threads(threads)
    assert results[0].equal(results[1])
    assert results[0].equal(results[2])
    assert not results[0].equal(psal.inpaint(image, hole, seed=8))


def test_seeds_far_apart_differ() -> None:
    image, hole = torch.rand(3, 60, 65, generator=torch.Generator().manual_seed(1)), box_mask(60, 65, (20, 45, 22, 43))
    results = [psal.inpaint(image, hole, seed=seed) for seed in (0, 2**62, 2**63 - 1, -(2**63))]
    assert all(not a.equal(b) for a, b in combinations(results, 2))


def test_default_seed_comes_from_torch() -> None:
    image, hole = torch.rand(1, 50, 65, generator=torch.Generator().manual_seed(1)), box_mask(50, 65, (10, 35, 25, 50))
    torch.manual_seed(5)
    first = psal.inpaint(image, hole)
    torch.manual_seed(5)
    assert psal.inpaint(image, hole).equal(first)
    assert not psal.inpaint(image, hole).equal(first)


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_integers_outside_the_hole_stay_bit_for_bit(channels: int, dtype: type) -> None:
    image = np.random.default_rng(0).integers(0, np.iinfo(dtype).max, (45, 52, channels), dtype=dtype, endpoint=True)
    hole = box_mask(45, 52, (12, 30, 20, 31)).numpy()
    filled = psal.inpaint(image, hole, seed=0)
    assert filled.dtype == dtype
    assert filled.shape == image.shape
    assert (filled[~hole] == image[~hole]).all()


@pytest.mark.parametrize("boxes", [[(12, 30, 20, 31)], []], ids=["hole", "no hole"])
@pytest.mark.parametrize("dtype", ["f4", "<f8", ">f8"])
def test_floats_outside_the_hole_stay_bit_for_bit(dtype: str, boxes: list[tuple[int, int, int, int]]) -> None:
    image, hole = np.random.default_rng(0).random((45, 52, 4)).astype(dtype), box_mask(45, 52, *boxes)
    filled = psal.inpaint(image, hole, seed=0)
    assert filled.dtype == image.dtype
    assert (filled == image)[~hole.numpy()].all()
    if dtype != ">f8":  # torch has no big-endian type
        tensor = torch.from_numpy(image).movedim(2, 0)[None]
        assert psal.inpaint(tensor, hole, seed=0)[..., ~hole].equal(tensor[..., ~hole])


def test_pillow_in_pillow_out() -> None:
    image = Image.effect_noise((60, 50), 80).convert("RGB")
    mask = Image.new("L", (60, 50))
    mask.paste(255, (20, 10, 40, 30))
    filled = psal.inpaint(image, mask, seed=0)
    assert isinstance(filled, Image.Image)
    assert (filled.size, filled.mode) == (image.size, "RGB")


def test_a_path_gives_a_photo_with_16_bits_and_metadata(tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 65536, (40, 50, 3), dtype=np.uint16)
    hole = box_mask(40, 50, (10, 20, 15, 30)).numpy()
    psal.Photo(pixels, Metadata(xmp=b"<x/>")).save(tmp_path / "photo.tif")
    filled = psal.inpaint(tmp_path / "photo.tif", hole, seed=0)
    assert isinstance(filled, psal.Photo)
    assert (filled.depth, filled.format, filled.metadata.xmp) == (16, "TIFF", b"<x/>")
    np.testing.assert_array_equal(filled.pixels[~hole], pixels[~hole])
    assert np.array_equal(filled, psal.inpaint(psal.Photo.open(tmp_path / "photo.tif"), hole, seed=0))


def test_no_hole_gives_a_copy() -> None:
    image = torch.rand(3, 20, 21)
    copy = psal.inpaint(image, torch.zeros(20, 21, dtype=torch.bool))
    assert copy.equal(image)
    assert copy.data_ptr() != image.data_ptr()


def test_a_ring_around_one_known_patch_is_enough() -> None:
    image, hole = torch.rand(3, 31, 33), torch.ones(31, 33, dtype=torch.bool)
    hole[12:19, 13:20] = False
    filled = psal.inpaint(image, hole, seed=0)
    assert filled[:, ~hole].equal(image[:, ~hole])
    assert filled.isfinite().all()


@pytest.mark.parametrize("width", [1, 2, 3, 5])
def test_line_far_from_a_large_hole_is_filled(width: int) -> None:
    """Guards against lines that vanish at coarse levels and are then searched only around the large hole."""
    image, line = waves(64, 300), box_mask(64, 300, (5, 60, 270, 270 + width))
    image[:, :, 150:] = 1 - image[:, :, 150:].square()  # the large hole then finds its matches in its own half
    hole = line | box_mask(64, 300, (15, 45, 20, 50))
    filled = psal.inpaint(image, hole, seed=0)
    assert (filled - image)[:, line].square().mean() < 1e-3


@pytest.mark.parametrize("known", [2, 3, 4, 5])
def test_known_stripes_that_merge_at_a_coarse_level(known: int) -> None:
    """Guards against searching a level without valid keys because a coarser level, or another region, has some."""
    hole = torch.ones(128, 128, dtype=torch.bool)
    hole[:9, :9] = False
    hole[40:110, 40:110] = (torch.arange(70) % (known + 1) >= known)[:, None]
    image = torch.rand(3, 128, 128, generator=torch.Generator().manual_seed(0)) * 0.5 + 0.25
    filled = psal.inpaint(image, hole, seed=0)
    assert filled[:, ~hole].equal(image[:, ~hole])
    assert filled.min() > 0.2


@pytest.mark.parametrize(
    ("size", "boxes", "message"),
    [
        ((20, 20), [(0, 20, 0, 20)], "mask marks the whole image"),
        ((20, 20), [(3, 20, 0, 20)], "mask must leave at least one known patch of 7 × 7 pixels"),
        ((6, 30), [(1, 2, 1, 2)], "image must be at least 7 × 7 pixels"),
    ],
)
def test_too_little_known(size: tuple[int, int], boxes: list[tuple[int, int, int, int]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        psal.inpaint(torch.rand(3, *size), box_mask(*size, *boxes))


def test_mask_of_another_size_is_refused() -> None:
    with pytest.raises(ValueError, match="mask"):
        psal.inpaint(torch.rand(3, 20, 30), torch.zeros(30, 20, dtype=torch.bool))


def test_progress_grows_to_one() -> None:
    shares: list[float] = []
    psal.inpaint(torch.rand(3, 60, 70), box_mask(60, 70, (15, 45, 20, 50)), seed=0, progress=shares.append)
    assert shares == sorted(shares)
    assert shares[0] > 0
    assert shares[-1] == 1


def test_known_islands_in_a_hole_anchor_the_colors() -> None:
    image = torch.rand(3, 96, 96, generator=torch.Generator().manual_seed(0)) * 0.3 + 0.3
    hole = box_mask(96, 96, (20, 80, 20, 80))
    hole[24:80:12, 24:80:12] = False
    filled = psal.inpaint(image, hole, seed=0)
    assert (filled - image)[:, hole].mean(1).abs().max() < 0.05


def test_filled_colors_stay_within_the_range_of_known_ones() -> None:
    image = torch.rand(3, 64, 64, generator=torch.Generator().manual_seed(4)) * 0.3 + 0.4
    hole = torch.ones(64, 64, dtype=torch.bool)
    hole[5:14, 5:30] = hole[40:52, 40:60] = hole[25:27, 3:6] = False
    filled = psal.inpaint(image, hole, seed=0)
    assert (filled.amin((1, 2)) >= image[:, ~hole].amin(1)).all()
    assert (filled.amax((1, 2)) <= image[:, ~hole].amax(1)).all()
