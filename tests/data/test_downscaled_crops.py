"""Random crops of photographs and their downscaled twins."""

from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from support.commands import save

from psal.data.degradation import downscale
from psal.data.downscaled_crops import DownscaledCrops
from psal.data.image_folder import MissingDataError, load_pixels


def noise(height: int, width: int, seed: int = 0) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


@pytest.mark.parametrize("scale", [2, 3, 4])
def test_crops_are_those_of_the_downscaled_photograph(scale: int, tmp_path: Path) -> None:
    save(tmp_path / "photo.png", noise(61, 74))
    large = load_pixels(tmp_path / "photo.png")
    small = downscale(large, scale)
    crops = DownscaledCrops(tmp_path, scale, 7, seed=0)
    moves, places = set(), set()
    for number in range(60):
        low, high = crops[number]
        assert low.shape == (3, 7, 7)
        assert high.shape == (3, 7 * scale, 7 * scale)
        found = []
        for mirrored in (False, True):
            for turns in range(4):
                back = [torch.rot90(x, -turns, (1, 2)) for x in (low, high)]
                back = [(x.flip(2) if mirrored else x).mul(255).round().byte() for x in back]
                hits = (
                    (small.unfold(1, 7, 1).unfold(2, 7, 1) == back[0][:, None, None]).all(-1).all(-1).all(0).nonzero()
                )
                for top, left in hits.tolist():
                    part = large[:, top * scale :, left * scale :][:, : 7 * scale, : 7 * scale]
                    if part.equal(back[1]):
                        found.append((mirrored, turns, top, left))
        assert len(found) == 1
        moves.add(found[0][:2])
        places.add(found[0][2:])
    assert len(moves) == 8
    assert len(places) > 20
    assert min(places)[0] == 0  # the border is drawn, too


def test_examples_depend_on_number_and_seed_alone(tmp_path: Path) -> None:
    for index in range(3):
        save(tmp_path / f"{index}.png", noise(40, 40, index))
    one, other = (DownscaledCrops(tmp_path, 2, 8, seed=seed) for seed in (0, 1))
    again = DownscaledCrops(tmp_path, 2, 8, seed=0)
    assert all(a.equal(b) for a, b in zip(one[5], again[5], strict=True))
    assert not one[5][0].equal(one[6][0])
    assert not one[5][0].equal(other[5][0])
    assert one.fingerprint == other.fingerprint


def test_broken_and_small_files_are_skipped_and_named(tmp_path: Path) -> None:
    save(tmp_path / "good.png", noise(30, 33))
    save(tmp_path / "small.png", noise(15, 99))
    (tmp_path / "broken.jpg").write_bytes(b"x")
    crops = DownscaledCrops(tmp_path, 2, 8, seed=0)
    for number in range(20):
        crops[number]
    assert {path.name for path in crops.broken} == {"broken.jpg", "small.png"}
    said = sorted(crops.broken.values())
    assert "broken.jpg cannot be read" in said[0]
    assert said[1].endswith("small.png is smaller than a crop of 16 × 16 pixels")
    (tmp_path / "good.png").unlink()
    with pytest.raises(MissingDataError, match="none of 1000 random pictures could be used; one reason is: "):
        DownscaledCrops(tmp_path, 2, 8, seed=0)[0]
