"""The copy map of a fill, as a file and on other layers."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image
from support.holes import box_mask

import psal

HEIGHT, WIDTH = 37, 43
HOLE = box_mask(HEIGHT, WIDTH, (10, 19, 12, 25), (25, 28, 0, 20))


def random_image() -> torch.Tensor:
    return torch.rand(3, HEIGHT, WIDTH, generator=torch.Generator().manual_seed(0))


@pytest.fixture(scope="module")
def shifts() -> psal.ShiftMap:
    found: psal.ShiftMap = psal.inpaint(random_image(), HOLE, seed=0, return_shifts=True)[1]
    return found


def test_every_pixel_of_the_hole_comes_from_a_known_one(shifts: psal.ShiftMap) -> None:
    assert shifts.size == (HEIGHT, WIDTH)
    assert (shifts.target == torch.nonzero(HOLE.flatten())[:, 0].numpy()).all()
    assert not HOLE.flatten()[torch.from_numpy(shifts.source)].any()
    assert (shifts.opacity == 1).all()


def test_the_fill_is_the_copied_pixels_but_for_the_blending(shifts: psal.ShiftMap) -> None:
    """On a picture with few levels far apart, blending alone does not turn one into another."""
    image = (torch.rand(1, HEIGHT, WIDTH, generator=torch.Generator().manual_seed(0)) > 0.5).float()
    filled, found = psal.inpaint(image, HOLE, seed=0, return_shifts=True)
    copied = psal.apply_shifts(found, image)
    assert (copied[:, ~HOLE] == image[:, ~HOLE]).all()
    assert ((filled - copied).abs() < 0.5)[:, HOLE].float().mean() > 0.85


def test_a_seed_gives_the_same_fill_with_and_without_shifts(shifts: psal.ShiftMap) -> None:
    with_shifts, again = psal.inpaint(random_image(), HOLE, seed=0, return_shifts=True)
    assert with_shifts.equal(psal.inpaint(random_image(), HOLE, seed=0))
    assert (again.source == shifts.source).all()


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", ">u2", "int64", "float16", "float64", "complex64"])
@pytest.mark.parametrize("channels", [None, 1, 5])
def test_arrays_of_any_type_are_copied_bit_for_bit(dtype: str, channels: int | None, shifts: psal.ShiftMap) -> None:
    shape = (HEIGHT, WIDTH) if channels is None else (HEIGHT, WIDTH, channels)
    values = np.random.default_rng(0).integers(0, 100, shape).astype(dtype)
    filled = psal.apply_shifts(shifts, values)
    rows, columns = shifts.sources()[..., 0], shifts.sources()[..., 1]
    assert filled.dtype == values.dtype
    np.testing.assert_array_equal(filled, values[rows, columns])


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.uint16, torch.int64, torch.bfloat16, torch.float64])
def test_tensors_of_any_type_are_copied_bit_for_bit(dtype: torch.dtype, shifts: psal.ShiftMap) -> None:
    values = torch.randint(0, 100, (2, 5, HEIGHT, WIDTH), generator=torch.Generator().manual_seed(0)).to(dtype)
    filled = psal.apply_shifts(shifts, values.transpose(0, 1).contiguous().transpose(0, 1))
    sources = torch.from_numpy(shifts.sources())
    assert filled.dtype == dtype
    assert filled.equal(values[..., sources[..., 0], sources[..., 1]])


@pytest.mark.parametrize("mode", ["1", "L", "P", "RGB", "RGBA", "CMYK", "I", "I;16", "F"])
def test_pillow_images_keep_their_mode(mode: str, shifts: psal.ShiftMap) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (HEIGHT, WIDTH, 3), dtype=np.uint8)
    image = Image.fromarray(noise).convert("L" if mode == "I;16" else "RGB").convert(mode)
    filled = psal.apply_shifts(shifts, image)
    sources = shifts.sources()
    assert (filled.mode, filled.size) == (mode, image.size)
    np.testing.assert_array_equal(np.asarray(filled), np.asarray(image)[sources[..., 0], sources[..., 1]])
    assert filled.getpalette() == image.getpalette()


def test_a_path_gives_a_photo(shifts: psal.ShiftMap, tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 65536, (HEIGHT, WIDTH), dtype=np.uint16)
    psal.Photo(pixels).save(tmp_path / "depth.png")
    shifts.save(tmp_path / "map.npz")
    filled = psal.apply_shifts(tmp_path / "map.npz", tmp_path / "depth.png")
    assert isinstance(filled, psal.Photo)
    np.testing.assert_array_equal(filled.pixels, psal.apply_shifts(shifts, pixels))


@pytest.mark.parametrize("dtype", [np.uint8, np.float64, np.bool_])
def test_only_the_feathered_edge_is_mixed(dtype: type) -> None:
    values: NDArray[Any] = (
        np.random.default_rng(0).integers(0, 2 if dtype is np.bool_ else 256, (HEIGHT, WIDTH, 2)).astype(dtype)
    )
    _, shifts = psal.inpaint(random_image(), HOLE, seed=0, feather=3, return_shifts=True)
    filled = psal.apply_shifts(shifts, values)
    sources = shifts.sources()
    copied = values[sources[..., 0], sources[..., 1]]
    np.testing.assert_array_equal(filled[HOLE.numpy()], copied[HOLE.numpy()])
    opacity = np.zeros((HEIGHT, WIDTH, 1))
    opacity.flat[shifts.target] = shifts.opacity
    if dtype is np.bool_:
        mixed = np.where(opacity >= 0.5, copied, values)
    else:
        mixed = values + opacity * (copied.astype(float) - values)
    tolerance = 0.5 if dtype is np.uint8 else 1e-9
    np.testing.assert_allclose(filled.astype(float), mixed.astype(float), atol=tolerance)
    tensor = psal.apply_shifts(shifts, torch.from_numpy(values).movedim(2, 0))
    np.testing.assert_allclose(tensor.movedim(0, 2).numpy().astype(float), filled.astype(float), atol=1e-6)


def test_files_hold_the_map_without_loss(tmp_path: Path) -> None:
    _, shifts = psal.inpaint(random_image(), HOLE, seed=0, feather=2, return_shifts=True)
    shifts.save(tmp_path / "map.npz")
    again = psal.ShiftMap.open(tmp_path / "map.npz")
    assert again.size == shifts.size
    for name in ("target", "source", "opacity"):
        np.testing.assert_array_equal(getattr(again, name), getattr(shifts, name))
    with np.load(tmp_path / "map.npz") as archive:
        assert str(archive["format"]) == "psal shift map 1"


def test_a_picture_without_a_hole_has_an_empty_map() -> None:
    image = random_image()
    filled, shifts = psal.inpaint(image, torch.zeros_like(HOLE), return_shifts=True)
    assert filled.equal(image)
    assert repr(shifts) == f"<ShiftMap {WIDTH} × {HEIGHT}, 0 pixels>"
    assert psal.apply_shifts(shifts, image).equal(image)


@pytest.mark.parametrize("content", [b"", b"Dear all", "npy", "other", "cut", "outside"])
def test_a_file_that_is_no_map_is_refused_by_name(content: bytes | str, shifts: psal.ShiftMap, tmp_path: Path) -> None:
    path = tmp_path / "map.npz"
    shifts.save(path)
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content == "npy":
        with path.open("wb") as file:
            np.save(file, np.zeros(3))
    elif content == "other":
        np.savez(path, x=np.zeros(3))
    elif content == "cut":
        path.write_bytes(path.read_bytes()[:-40])
    else:
        fields: dict[str, Any] = dict(np.load(path))
        np.savez(path, **fields | {"source": fields["source"] + HEIGHT * WIDTH})
    with pytest.raises(ValueError, match=rf"{re.escape(str(path))} is damaged, or not a shift map"):
        psal.ShiftMap.open(path)


def test_wrong_arguments_are_named(shifts: psal.ShiftMap, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="image is 20 × 30 pixels and the shift map 43 × 37"):
        psal.apply_shifts(shifts, np.zeros((30, 20)))
    with pytest.raises(TypeError, match="shifts must be a ShiftMap"):
        psal.apply_shifts(np.zeros((30, 20)), np.zeros((30, 20)))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="image must be a path"):
        psal.apply_shifts(shifts, [[1]])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"let the name of a shift map end in \.npz"):
        shifts.save(tmp_path / "map.png")
    with pytest.raises(FileNotFoundError, match="there is no such file"):
        psal.ShiftMap.open(tmp_path / "map.npz")
