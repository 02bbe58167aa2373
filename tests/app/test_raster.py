"""Shapes as masks, against the distance of every pixel."""

from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from psal.app.fill import MIN_MARGIN, fill_windows
from psal.app.raster import box_of, grown, marked_box, polygon, slices, stroke

SIZE = 53, 71


def distance_to_polyline(
    points: NDArray[np.float64], x: NDArray[np.float64], y: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Distance of points to a polyline, straight from its definition."""
    best = np.full(x.shape, np.inf)
    for start, end in pairwise(points):
        along = end - start
        share = ((x - start[0]) * along[0] + (y - start[1]) * along[1]) / max(float(along @ along), 1e-12)
        share = np.clip(share, 0, 1)
        best = np.minimum(best, np.hypot(x - start[0] - share * along[0], y - start[1] - share * along[1]))
    return best


@pytest.mark.parametrize("diameter", [1.0, 2.5, 9.0, 40.0])
def test_a_stroke_covers_the_pixels_within_half_its_size(diameter: float) -> None:
    points = np.array([[10.3, 8.7], [40.1, 9.2], [60.9, 44.4], [60.9, 44.4], [-5.0, 30.0]])
    box = box_of(points, diameter / 2 + 1, SIZE)
    y, x = np.mgrid[box[0] : box[2], box[1] : box[3]] + 0.5
    distance = distance_to_polyline(points, x, y)
    drawn = stroke(points, diameter, box)
    assert drawn[distance < diameter / 2 - 1e-9].all()
    assert not drawn[distance > diameter / 2 + 1e-9].any()


def test_a_click_is_a_disc_and_strokes_end_at_the_border() -> None:
    point = np.array([[0.5, 0.5]])
    box = box_of(point, 3.5, SIZE)
    assert box == (0, 0, 4, 4)
    expected = np.hypot(*np.mgrid[:4, :4]) <= 2.5
    np.testing.assert_array_equal(stroke(point, 5, box), expected)
    outside = np.array([[500.0, 500.0]])
    top, left, bottom, right = box_of(outside, 3, SIZE)
    assert top == bottom or left == right


def test_a_lasso_covers_what_is_inside_by_the_even_odd_rule() -> None:
    star = np.array([[35 + 30 * np.sin(4 * np.pi * k / 5), 26 - 24 * np.cos(4 * np.pi * k / 5)] for k in range(5)])
    box = box_of(star, 1, SIZE)
    y, x = np.mgrid[box[0] : box[2], box[1] : box[3]] + 0.5
    inside = np.zeros(x.shape, bool)
    for (x0, y0), (x1, y1) in zip(star, np.roll(star, -1, 0), strict=True):
        with np.errstate(divide="ignore", invalid="ignore"):
            inside ^= ((y0 > y) != (y1 > y)) & (x >= x0 + (y - y0) * (x1 - x0) / (y1 - y0))
    np.testing.assert_array_equal(polygon(star, box), inside)


def test_growing_and_boxes() -> None:
    mask = np.zeros(SIZE, bool)
    assert marked_box(mask) is None
    mask[20, 30] = True
    assert marked_box(grown(mask, 4)) == (16, 26, 25, 35)
    assert grown(mask, 1).sum() == 5


def test_a_fill_looks_at_the_surroundings_of_each_hole_only() -> None:
    hole = np.zeros((4000, 6000), bool)
    hole[100:140, 100:140] = hole[3000:3040, 5000:5040] = hole[3000:3020, 5100:5120] = True
    box = marked_box(hole)
    assert box is not None
    first, second = fill_windows(hole[slices(box)], box, hole.shape)
    assert first == (0, 0, 140 + MIN_MARGIN, 140 + MIN_MARGIN)
    assert second == (3000 - MIN_MARGIN, 5000 - MIN_MARGIN, 3040 + MIN_MARGIN, 5120 + MIN_MARGIN)
    [all_of_it] = fill_windows(hole[slices(box)], box, hole.shape, source=(0, 0, 4000, 6000))
    assert all_of_it == (0, 0, 4000, 6000)
