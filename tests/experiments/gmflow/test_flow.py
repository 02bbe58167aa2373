"""Flow fields: their distance, the frames they warp and their colors."""

import pytest
import torch
from support.tolerances import assert_close

from psal.experiments.gmflow.flow import colors, end_point_distance, psnr, warp


def constant(x: float, y: float, height: int = 5, width: int = 7) -> torch.Tensor:
    return torch.tensor([x, y])[None, :, None, None].expand(1, 2, height, width)


def test_distance_is_that_of_the_end_points() -> None:
    assert_close(end_point_distance(constant(4, 1), constant(1, -3)), torch.full((1, 5, 7), 5.0))


def test_a_frame_is_sampled_where_the_flow_points_to() -> None:
    frame = torch.rand(1, 3, 5, 7)
    warped = warp(frame, constant(2, -1))
    assert_close(warped[..., 1:, :-2], frame[..., :-1, 2:])
    assert_close(warped[..., 1:, -2:], frame[..., :-1, -1:].expand(-1, -1, -1, 2))  # beyond the border


def test_positions_between_pixels_are_interpolated() -> None:
    frame = torch.rand(1, 3, 5, 7)
    assert_close(warp(frame, constant(0.25, 0))[..., :-1], 0.75 * frame[..., :-1] + 0.25 * frame[..., 1:])


def test_no_flow_changes_nothing() -> None:
    frame = torch.rand(1, 3, 5, 7)
    assert_close(warp(frame, constant(0, 0)), frame)


def test_psnr_is_that_of_the_mean_square_error() -> None:
    assert psnr(torch.zeros(1, 3, 4, 4), torch.full((1, 3, 4, 4), 0.1)) == pytest.approx(20)


@pytest.mark.parametrize(
    ("x", "y", "expected"),
    [
        (8, 0, (1, 0, 0)),  # red is right
        (0, 8, (0.5, 1, 0)),
        (-8, 0, (0, 1, 1)),
        (4, 0, (1, 0.5, 0.5)),  # half as far, half as saturated
        (80, 0, (1, 0, 0)),
        (0, 0, (1, 1, 1)),
    ],
)
def test_direction_is_hue_and_length_saturation(x: float, y: float, expected: tuple[float, ...]) -> None:
    assert_close(colors(constant(x, y), 8.0)[0, :, 2, 3], torch.tensor(expected, dtype=torch.float32))
