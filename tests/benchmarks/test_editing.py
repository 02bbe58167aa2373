"""The parts of the benchmark of the edits, on tiny pictures."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.editing.beds import BEDS, MaskedPhotograph
from benchmarks.editing.busy_machine import busy_process
from benchmarks.editing.inpaint_comparison import fill_in_fresh_process
from benchmarks.editing.methods import METHODS, Mask, Pixels
from benchmarks.editing.photographs import Photographs
from benchmarks.editing.quality import hole_quality
from benchmarks.editing.small_hole import seconds_to_fill

WAVES = np.sin(np.arange(70)[:, None] / 3) + np.sin(np.arange(91) / 4)
WAVY: Pixels = np.repeat((WAVES[..., None] * 60 + 128).astype(np.uint8), 3, axis=2)


def hole_of(image: Pixels) -> Mask:
    hole = np.zeros(image.shape[:2], bool)
    hole[30:41, 40:53] = True
    return hole


@pytest.mark.parametrize("name", METHODS)
def test_a_method_fills_the_hole_without_seeing_what_was_in_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    method = METHODS[name]
    if not method.is_installed:
        pytest.skip(f"{method.module} is not installed: pip install 'psal[compare]'")
    hole = hole_of(WAVY)
    spoiled = np.where(hole[..., None], np.uint8(255), WAVY)
    pictures = [MaskedPhotograph("waves", image, hole) for image in (WAVY, spoiled)]
    monkeypatch.chdir(Path(__file__).parents[2])  # where the worker's module is found
    filled, cost = fill_in_fresh_process(name, pictures)
    assert filled[0] is not None
    assert filled[1] is not None
    assert np.array_equal(filled[0], filled[1])
    gray = np.where(hole[..., None], np.uint8(127), WAVY)
    assert hole_quality(filled[0], WAVY, hole)[0] > hole_quality(gray, WAVY, hole)[0] + 1
    assert len(cost["seconds"]) == len(cost["cpu_seconds"]) == 2
    assert 0 <= cost["beyond"][0] < cost["peak"][0]
    assert not cost["refused"]


def test_a_refused_picture_does_not_lose_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    everything = np.ones(WAVY.shape[:2], bool)
    pictures = [
        MaskedPhotograph(name, WAVY, hole)
        for name, hole in (("first", hole_of(WAVY)), ("all hole", everything), ("last", hole_of(WAVY)))
    ]
    monkeypatch.chdir(Path(__file__).parents[2])  # where the worker's module is found
    filled, cost = fill_in_fresh_process("psal", pictures)
    assert [result is None for result in filled] == [False, True, False]
    assert len(cost["seconds"]) == 2
    assert "mask marks the whole image" in cost["refused"]["all hole"]


def test_a_bed_has_pictures_with_holes(data: Path) -> None:
    for name, bed in BEDS.items():
        pictures = list(bed.pictures(Photographs(data, 1, 128)))
        assert len(pictures) == 1, name
        assert pictures[0].hole.shape == pictures[0].image.shape[:2]
        assert 0 < pictures[0].hole.mean() < 0.5


def test_a_mask_without_its_picture_size_is_reduced_like_the_picture(data: Path) -> None:
    [picture] = BEDS["objects"].pictures(Photographs(data, 1, 64))
    assert picture.hole.shape == picture.image.shape[:2] == (48, 64)
    assert picture.hole[20:26, 25:33].all()


def test_a_small_hole_is_timed_in_the_whole_and_in_the_crop(data: Path) -> None:
    whole, crop = seconds_to_fill(str(data / "highres/images/hifill_1.jpg"), hole_side=6, crop_side=50, runs=2)
    assert len(whole) == len(crop) == 2


def test_the_busy_process_ends() -> None:
    with busy_process() as process:
        assert process.poll() is None
    assert process.poll() is not None
