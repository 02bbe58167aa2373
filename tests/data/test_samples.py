import numpy as np
import pytest

from psal.data.samples import Sample, samples

SAMPLES = {sample.name: sample for sample in samples()}


@pytest.mark.parametrize("sample", SAMPLES.values(), ids=SAMPLES)
def test_samples_are_small_8_bit_pictures(sample: Sample) -> None:
    pictures = [x for x in (sample.picture, sample.mask, sample.reference) if x is not None]
    assert all(x.dtype == np.uint8 and max(x.shape[:2]) <= 512 for x in pictures)


def test_each_kind_of_editing_has_what_it_takes() -> None:
    needs = {name: (sample.mask is not None, sample.reference is not None) for name, sample in SAMPLES.items()}
    assert needs == {
        "inpaint": (True, False),
        "colorize": (False, True),
        "reconstruct": (False, True),
        "upscale": (False, False),
    }


def test_the_mask_marks_a_part_of_the_picture() -> None:
    sample = SAMPLES["inpaint"]
    assert sample.mask is not None
    assert sample.mask.shape == sample.picture.shape[:2]
    assert set(np.unique(sample.mask)) == {0, 255}
    assert 0.05 < (sample.mask == 255).mean() < 0.25


def test_the_picture_to_colour_is_grey_and_its_reference_is_not() -> None:
    sample = SAMPLES["colorize"]
    assert sample.picture.ndim == 2
    assert sample.reference is not None
    assert np.ptp(sample.reference, axis=2).max() > 100
