"""Filling holes: what is known stays, what is filled follows the rest of the picture."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from scipy import sparse
from scipy.sparse.linalg import spsolve
from torch import Tensor

import psal
from psal.editing.atlas import make_atlas
from psal.editing.poisson_solver import solve_poisson
from psal.io.metadata import Metadata


def waves(height: int, width: int) -> Tensor:
    """A picture that repeats itself every 8 pixels across and every 12 down, ``[3, H, W]``."""
    y, x = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    across, down = torch.sin(x * (2 * torch.pi / 8)), torch.sin(y * (2 * torch.pi / 12))
    return torch.stack([across, down, across * down]) * 0.4 + 0.5


def hole_at(height: int, width: int, *boxes: tuple[int, int, int, int]) -> Tensor:
    hole = torch.zeros(height, width, dtype=torch.bool)
    for top, bottom, left, right in boxes:
        hole[top:bottom, left:right] = True
    return hole


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
def test_a_repeating_texture_is_continued_and_the_rest_untouched(boxes: list[tuple[int, int, int, int]]) -> None:
    image, hole = waves(87, 103), hole_at(87, 103, *boxes)
    filled = psal.inpaint(image, hole, seed=0)
    assert filled[:, ~hole].equal(image[:, ~hole])
    assert (filled - image)[:, hole].square().mean() < 1e-3


def test_a_constant_picture_stays_constant() -> None:
    image = torch.full((3, 41, 37), 0.3)
    filled = psal.inpaint(image, hole_at(41, 37, (10, 30, 8, 25)), seed=0)
    torch.testing.assert_close(filled, image, rtol=0, atol=1e-5)


def test_light_that_falls_off_goes_on_in_the_hole() -> None:
    """No two places are of the same brightness: what is copied has to be bent to fit."""
    y, x = torch.meshgrid(torch.linspace(0, 1, 80), torch.linspace(0, 1, 90), indexing="ij")
    grain = torch.rand(1, 80, 90, generator=torch.Generator().manual_seed(0)) * 0.02
    image, hole = 0.2 + 0.6 * x * y + grain, hole_at(80, 90, (30, 60, 35, 70))
    filled = psal.inpaint(image, hole, seed=0)
    assert (filled - image)[:, hole].square().mean().sqrt() < 0.015


def test_a_rough_surface_stays_rough_beside_a_smooth_one_of_its_colour() -> None:
    noise = torch.rand(1, 96, 160, generator=torch.Generator().manual_seed(0)) * 0.6 - 0.3
    noise[:, :, 70:] = 0
    image, hole = 0.5 + noise, hole_at(96, 160, (30, 60, 25, 55))
    filled = psal.inpaint(image, hole, seed=0)
    assert filled[:, hole].var() > 0.7 * image[:, hole].var()


@pytest.mark.parametrize("content", [0.0, 1.0])
def test_what_stands_in_the_hole_does_not_matter(content: float) -> None:
    image, hole = torch.rand(3, 53, 61, generator=torch.Generator().manual_seed(0)), hole_at(53, 61, (20, 38, 25, 50))
    other = image.clone()
    other[:, hole] = content
    assert psal.inpaint(other, hole, seed=3).equal(psal.inpaint(image, hole, seed=3))


def test_same_seed_same_bits_on_any_thread_count() -> None:
    image, hole = torch.rand(3, 70, 65, generator=torch.Generator().manual_seed(1)), hole_at(70, 65, (20, 45, 25, 50))
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
    image, hole = torch.rand(3, 40, 45, generator=torch.Generator().manual_seed(1)), hole_at(40, 45, (10, 30, 12, 33))
    results = [psal.inpaint(image, hole, seed=seed) for seed in (0, 2**62, 2**63 - 1, -(2**63))]
    assert all(not a.equal(b) for number, a in enumerate(results) for b in results[:number])


def test_the_seed_comes_from_torch_if_none_is_given() -> None:
    image, hole = torch.rand(1, 50, 65, generator=torch.Generator().manual_seed(1)), hole_at(50, 65, (10, 35, 25, 50))
    torch.manual_seed(5)
    first = psal.inpaint(image, hole)
    torch.manual_seed(5)
    assert psal.inpaint(image, hole).equal(first)
    assert not psal.inpaint(image, hole).equal(first)


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_whole_numbers_outside_of_the_hole_stay_bit_for_bit(channels: int, dtype: type) -> None:
    image = np.random.default_rng(0).integers(0, np.iinfo(dtype).max, (45, 52, channels), dtype=dtype, endpoint=True)
    hole = hole_at(45, 52, (12, 30, 20, 31)).numpy()
    filled = psal.inpaint(image, hole, seed=0)
    assert filled.dtype == dtype
    assert filled.shape == image.shape
    assert (filled[~hole] == image[~hole]).all()


@pytest.mark.parametrize("boxes", [[(12, 30, 20, 31)], []], ids=["hole", "no hole"])
@pytest.mark.parametrize("dtype", ["f4", "<f8", ">f8"])
def test_floats_outside_of_the_hole_stay_bit_for_bit(dtype: str, boxes: list[tuple[int, int, int, int]]) -> None:
    image, hole = np.random.default_rng(0).random((45, 52, 4)).astype(dtype), hole_at(45, 52, *boxes)
    filled = psal.inpaint(image, hole, seed=0)
    assert filled.dtype == image.dtype
    assert (filled == image)[~hole.numpy()].all()
    if dtype != ">f8":  # which torch doesn't have
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
    hole = hole_at(40, 50, (10, 20, 15, 30)).numpy()
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
def test_a_line_is_filled_far_from_a_large_hole(width: int) -> None:
    """Guards against lines that vanish at the coarse levels and are looked for where the large hole is."""
    image, line = waves(64, 300), hole_at(64, 300, (5, 60, 270, 270 + width))
    image[:, :, 150:] = 1 - image[:, :, 150:].square()  # so that the hole finds its matches on its own side
    hole = line | hole_at(64, 300, (15, 45, 20, 50))
    filled = psal.inpaint(image, hole, seed=0)
    assert (filled - image)[:, line].square().mean() < 1e-3


@pytest.mark.parametrize("known", [2, 3, 4, 5])
def test_stripes_of_known_pixels_that_merge_at_a_coarse_level(known: int) -> None:
    """Guards against searching a level that has no key because a coarser one, or another place, has some."""
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
        ((20, 20), [(0, 20, 0, 20)], "mask is nothing but hole"),
        ((20, 20), [(3, 20, 0, 20)], "mask must leave at least one known patch of 7 × 7 pixels"),
        ((6, 30), [(1, 2, 1, 2)], "image must be at least 7 × 7 pixels"),
    ],
)
def test_too_little_known(size: tuple[int, int], boxes: list[tuple[int, int, int, int]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        psal.inpaint(torch.rand(3, *size), hole_at(*size, *boxes))


def test_a_mask_of_another_size_is_named() -> None:
    with pytest.raises(ValueError, match="mask"):
        psal.inpaint(torch.rand(3, 20, 30), torch.zeros(30, 20, dtype=torch.bool))


def test_progress_grows_to_one() -> None:
    shares: list[float] = []
    psal.inpaint(torch.rand(3, 60, 70), hole_at(60, 70, (15, 45, 20, 50)), seed=0, progress=shares.append)
    assert shares == sorted(shares)
    assert shares[0] > 0
    assert shares[-1] == 1


def test_windows_of_all_parts_lie_in_the_atlas_once() -> None:
    queries = hole_at(60, 90, (0, 4, 0, 5), (20, 22, 3, 80), (30, 59, 40, 47), (50, 51, 89, 90), (26, 27, 44, 45))
    queries |= torch.eye(60, 90, dtype=torch.bool).roll(9, 0)  # its box holds others
    atlas = make_atlas(queries, 3)
    places = (atlas.y * 90 + atlas.x)[atlas.cut(queries) & atlas.real]
    assert torch.nonzero(queries.flatten())[:, 0].equal(places.sort().values)


def test_windows_keep_their_distance() -> None:
    """Guards against a patch that reads the pixels of the window beside its own."""
    queries = hole_at(40, 50, (0, 5, 0, 6), (0, 5, 44, 50), (35, 40, 20, 30))
    atlas = make_atlas(queries, 3)
    taken = atlas.cut(queries) & atlas.real
    y, x = torch.nonzero(taken, as_tuple=True)
    for dy, dx in ((-3, 0), (3, 0), (0, -3), (0, 3)):
        there = y + dy, x + dx
        near = (atlas.y[there] - atlas.y[taken]).abs() <= 3
        near &= (atlas.x[there] - atlas.x[taken]).abs() <= 3
        assert (near | ~atlas.real[there]).all()


def masks_with_known_islands() -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(0)
    strokes = torch.nn.functional.max_pool2d(
        torch.rand(1, 67, 90, generator=generator).gt(0.99).float(), (5, 9), 1, (2, 4)
    )
    masks = {
        "box": hole_at(67, 90, (5, 60, 7, 84)),
        "one island": torch.ones(67, 90, dtype=torch.bool),
        "lattice": torch.ones(67, 90, dtype=torch.bool),
        "other lattice": torch.ones(67, 90, dtype=torch.bool),
        "noise": torch.rand(67, 90, generator=generator) < 0.8,
        "strokes": strokes[0] > 0,
    }
    masks["one island"][31:34, 60:62] = False
    masks["lattice"][4::16, 4::16] = False
    masks["other lattice"][5::12, 7::12] = False
    return masks


@pytest.mark.parametrize("screening", [0, 0.01])
@pytest.mark.parametrize("name", masks_with_known_islands())
def test_the_poisson_equation_is_solved(name: str, screening: float) -> None:
    """Guards against coarse grids that forget small islands: each cycle then adds to the error."""
    inside = masks_with_known_islands()[name]
    real = torch.ones(67, 90, dtype=torch.bool)
    real[20:, 45] = inside[:, 45] = False  # as between two windows
    side = torch.randn(2, 67, 90, generator=torch.Generator().manual_seed(1)) * 0.1
    solved = solve_poisson(side, inside, real, screening)
    assert not solved[:, ~inside].any()
    torch.testing.assert_close(solved[:, inside], direct_solution(side, inside, real, screening), rtol=2e-4, atol=3e-3)


def direct_solution(side: Tensor, inside: Tensor, real: Tensor, screening: float) -> Tensor:
    """Of the Poisson equation for the pixels inside, ``[C, n]``."""
    height, width = inside.shape
    across = sparse.diags([-1.0, 1.0], [0, 1], shape=(width - 1, width))
    along = sparse.diags([-1.0, 1.0], [0, 1], shape=(height - 1, height))
    steps = sparse.vstack([sparse.kron(sparse.eye(height), across), sparse.kron(along, sparse.eye(width))])
    links = torch.cat([(real[:, 1:] & real[:, :-1]).flatten(), (real[1:] & real[:-1]).flatten()]).numpy()
    laplacian = (-steps.T @ sparse.diags(links.astype(float)) @ steps - screening * sparse.eye(height * width)).tocsr()
    unknown = inside.flatten().numpy()
    solution = spsolve(laplacian[unknown][:, unknown].tocsc(), side[:, inside].double().numpy().T)
    return torch.from_numpy(solution.T).float()


def test_known_islands_in_a_hole_keep_the_colours_near_theirs() -> None:
    image = torch.rand(3, 96, 96, generator=torch.Generator().manual_seed(0)) * 0.3 + 0.3
    hole = hole_at(96, 96, (20, 80, 20, 80))
    hole[24:80:12, 24:80:12] = False
    filled = psal.inpaint(image, hole, seed=0)
    assert (filled - image)[:, hole].mean(1).abs().max() < 0.05


def test_colours_stay_within_those_that_are_known() -> None:
    image = torch.rand(3, 64, 64, generator=torch.Generator().manual_seed(4)) * 0.3 + 0.4
    hole = torch.ones(64, 64, dtype=torch.bool)
    hole[5:14, 5:30] = hole[40:52, 40:60] = hole[25:27, 3:6] = False
    filled = psal.inpaint(image, hole, seed=0)
    assert (filled.amin((1, 2)) >= image[:, ~hole].amin(1)).all()
    assert (filled.amax((1, 2)) <= image[:, ~hole].amax(1)).all()
