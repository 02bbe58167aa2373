import numpy as np
import pytest
import torch
from PIL import Image

from psal.editing.resizing import back_project, halve, resize


def test_resize_agrees_with_pillow() -> None:
    values = torch.rand(41, 59, generator=torch.Generator().manual_seed(0))
    image = Image.fromarray(values.numpy())
    for size in [(17, 23), (82, 118), (40, 200)]:
        expected = torch.from_numpy(np.array(image.resize(size[::-1], Image.Resampling.BICUBIC)))
        torch.testing.assert_close(resize(values[None, None], size)[0, 0], expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize(("height", "width"), [(4, 6), (5, 6), (4, 7), (5, 7), (1, 1)])
def test_halve_takes_means_of_2_by_2_pixels(height: int, width: int) -> None:
    x = torch.rand(2, height, width)
    rows, columns = ((size + 1) // 2 for size in (height, width))
    expected = [[x[:, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2].mean((1, 2)) for j in range(columns)] for i in range(rows)]
    torch.testing.assert_close(halve(x), torch.stack([torch.stack(row, 1) for row in expected], 1))


def test_back_projection_keeps_an_enlargement_that_fits() -> None:
    large = torch.rand(1, 1, 31, 44, generator=torch.Generator().manual_seed(0))
    small = resize(large, (15, 22))
    torch.testing.assert_close(back_project(large, small), large, rtol=0, atol=1e-5)
