import pytest
import torch

import psal

WHITE = (255, 255, 255)


@pytest.mark.parametrize(
    ("shift", "color"),
    [
        ((0, 6), (255, 0, 0)),  # right: red
        ((6, 0), (128, 255, 0)),  # down: yellow-green
        ((0, -6), (0, 255, 255)),  # left: cyan
        ((-6, 0), (128, 0, 255)),  # up: violet
        ((0, 0), WHITE),
    ],
)
def test_hue_is_the_direction(shift: tuple[int, int], color: tuple[int, int, int]) -> None:
    """A window of a picture of noise lies where it was cut out, so all its pixels are shifted alike."""
    image = torch.rand(3, 53, 61)
    reference = torch.rand(3, 53, 61)
    down, right = shift
    reference[:, 15 + down : 35 + down, 15 + right : 45 + right] = image[:, 15:35, 15:45]
    window = image[:, 15:35, 15:45]
    if shift == (0, 0):
        _, picture = psal.reconstruct(image, image, seed=0, return_shifts=True)
    else:
        frame = torch.rand(3, 20 + 12, 30 + 12)
        frame[:, max(down, 0) : max(down, 0) + 20, max(right, 0) : max(right, 0) + 30] = window
        query = torch.rand(3, 32, 42)
        query[:, max(-down, 0) : max(-down, 0) + 20, max(-right, 0) : max(-right, 0) + 30] = window
        _, picture = psal.reconstruct(query, frame, seed=0, return_shifts=True)
    inside = (picture * 255).round()[:, 10:18, 12:24]
    # Noise beside the window is shifted further, so the colour is paler; its hue is the one expected.
    full = torch.tensor(color, dtype=torch.float32)[:, None, None]
    faded = 255 - (255 - full) * ((255 - inside).amax(0) / 255)
    torch.testing.assert_close(inside, faded.expand_as(inside), atol=2, rtol=0)
    assert ((255 - inside).amax(0) > 10).all() == (color != WHITE)
