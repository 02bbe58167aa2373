"""Before and after in one picture."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from psal.io.formats import to_uint8

GAP = 8  # pixels
BACKGROUND = "white"


def side_by_side(before: NDArray[Any], after: NDArray[Any]) -> NDArray[Any]:
    """Two pictures next to each other, the first resized to the size of the second.

    Args:
        before, after: ``(H, W)`` or ``(H, W, C)``, uint8 or uint16; their sizes may differ.

    Returns:
        uint8 ``(H, 2 W + 8, 3)`` with the second's H and W.

    >>> side_by_side(np.zeros((5, 6), np.uint8), np.zeros((10, 12, 4), np.uint16)).shape
    (10, 32, 3)
    """
    height, width = after.shape[:2]
    sheet = Image.new("RGB", (2 * width + GAP, height), BACKGROUND)
    for pixels, left in ((before, 0), (after, width + GAP)):
        image = Image.fromarray(to_uint8(pixels)).convert("RGBA")
        image = image.resize((width, height), Image.Resampling.BICUBIC)
        sheet.paste(image, (left, 0), image)
    return np.asarray(sheet)
