import numpy as np
import pytest

from psal.data.samples import Sample, samples
from psal.editing.registry import EDITS

SAMPLES = {sample.edit: sample for sample in samples()}


@pytest.mark.parametrize("sample", SAMPLES.values(), ids=SAMPLES)
def test_samples_are_small_8_bit_pictures(sample: Sample) -> None:
    pictures = [x for x in (sample.picture, sample.partner) if x is not None]
    assert all(x.dtype == np.uint8 and max(x.shape[:2]) <= 512 for x in pictures)


def test_each_edit_has_a_sample_with_what_it_takes() -> None:
    taken = {name: sample.partner is not None for name, sample in SAMPLES.items()}
    assert taken == {name: edit.partner is not None for name, edit in EDITS.items()}


def test_the_mask_marks_a_part_of_the_picture() -> None:
    sample = SAMPLES["inpaint"]
    assert sample.partner is not None
    assert sample.partner.shape == sample.picture.shape[:2]
    assert set(np.unique(sample.partner)) == {0, 255}
    assert 0.05 < (sample.partner == 255).mean() < 0.25


def test_the_picture_to_color_is_gray_and_its_reference_is_not() -> None:
    sample = SAMPLES["colorize"]
    assert sample.picture.ndim == 2
    assert sample.partner is not None
    assert np.ptp(sample.partner, axis=2).max() > 100
