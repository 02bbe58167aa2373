"""Pixels for tests of pictures."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import ImageCms

HEIGHT, WIDTH = 11, 17
SRGB = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()


def noise(channels: int | None = 3, dtype: type = np.uint8, size: tuple[int, int] = (HEIGHT, WIDTH)) -> NDArray[Any]:
    """Random pixels ``(H, W)`` or ``(H, W, C)`` over the whole range of the dtype."""
    shape = size if channels is None else (*size, channels)
    pixels = np.random.default_rng(0).integers(0, np.iinfo(dtype).max, shape, dtype=dtype, endpoint=True)
    pixels.flat[:2] = 0, np.iinfo(dtype).max
    return pixels
