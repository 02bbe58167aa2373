"""Random crops of the pictures in a folder."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from support.pictures import write_pictures

from psal.data.image_folder import MissingDataError
from psal.data.random_crops import RandomCrops


def test_crops_depend_on_seed_and_number_alone(tmp_path: Path) -> None:
    write_pictures(tmp_path)
    first, again, other = (RandomCrops(tmp_path, 32, seed) for seed in (0, 0, 1))
    crops = [first[number] for number in range(6)]
    for number in (5, 0, 3):
        assert again[number].equal(crops[number])
    assert sum(crop.equal(other[number]) for number, crop in enumerate(crops)) == 0
    assert all(crop.shape == (3, 32, 32) and 0 <= crop.min() <= crop.max() <= 1 for crop in crops)


def test_a_crop_is_a_part_of_a_picture_or_its_mirror_image(tmp_path: Path) -> None:
    picture = np.random.default_rng(0).integers(0, 256, (21, 30, 3), np.uint8)
    Image.fromarray(picture).save(tmp_path / "only.png")
    crops = RandomCrops(tmp_path, 16, 0)
    mirrored = 0
    for number in range(12):
        pixels = crops[number].mul(255).round().byte().permute(1, 2, 0).numpy()
        windows = np.lib.stride_tricks.sliding_window_view(picture, (16, 16, 3))
        plain, flipped = (bool((windows == x).all((3, 4, 5)).any()) for x in (pixels, pixels[:, ::-1]))
        assert plain != flipped
        mirrored += flipped
    assert 0 < mirrored < 12


@pytest.mark.parametrize("size", [(5, 90), (40, 16), (16, 16), (1, 1)])
def test_small_pictures_are_enlarged(size: tuple[int, int], tmp_path: Path) -> None:
    Image.new("RGB", size, (10, 200, 30)).save(tmp_path / "small.png")
    crop = RandomCrops(tmp_path, 24, 0)[0]
    assert crop.shape == (3, 24, 24)
    assert (crop[1] == 200 / 255).all()


def test_broken_files_are_skipped_with_a_complaint(tmp_path: Path) -> None:
    write_pictures(tmp_path)
    broken = tmp_path / "a" / "001.png"
    broken.write_bytes(b"x")
    crops = RandomCrops(tmp_path, 16, 0)
    for number in range(12):
        assert crops[number].shape == (3, 16, 16)
    assert list(crops.broken) == [broken]
    assert f"{broken} cannot be read" in crops.broken[broken]


def test_a_folder_of_broken_files_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.png").write_bytes(b"x")
    with pytest.raises(
        MissingDataError, match=r"none of 1000 random pictures could be used; one reason is: .*x.png cannot be read"
    ):
        RandomCrops(tmp_path, 16, 0)[0]


def test_the_fingerprint_is_that_of_the_names_below_the_folder(tmp_path: Path) -> None:
    one, two = (RandomCrops(write_pictures(tmp_path / name), 16, 0) for name in ("one", "two"))
    assert one.fingerprint == two.fingerprint
    (tmp_path / "two" / "a" / "001.png").rename(tmp_path / "two" / "a" / "other.png")
    assert RandomCrops(tmp_path / "two", 16, 0).fingerprint != one.fingerprint


def test_draws_take_their_numbers_from_the_generator(tmp_path: Path) -> None:
    crops = RandomCrops(write_pictures(tmp_path), 16, 0)
    generator = torch.Generator().manual_seed(5)
    first = crops.draw(generator)
    assert not crops.draw(generator).equal(first)
    assert crops.draw(torch.Generator().manual_seed(5)).equal(first)
