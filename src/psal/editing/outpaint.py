"""Extend a picture beyond its borders with patches of itself."""

from typing import Any

import torch
import torch.nn.functional as F

from psal.checks import check_count
from psal.editing.hole_filling.coarse_to_fine import fill_hole
from psal.editing.hole_filling.fill_request import FillRequest
from psal.editing.hole_filling.hole_geometry import PATCH_SIZE
from psal.io.photo import MAX_PIXELS
from psal.io.pictures import ImageLike, open_picture
from psal.progress import Progress
from psal.seeds import check_seed, draw_seed


def outpaint(
    image: ImageLike,
    left: int = 0,
    right: int = 0,
    top: int = 0,
    bottom: int = 0,
    *,
    seed: int | None = None,
    progress: Progress | None = None,
) -> Any:
    """Extend a picture beyond its borders, by the fill of :func:`psal.inpaint`.

    Args:
        image: path, :class:`psal.Photo`, Pillow image, array or tensor; gray or RGB, with or without alpha.
        left, right, top, bottom: pixels to add on each side.
        seed: of the search; None draws one from torch's generator.
        progress: called with the fraction of the work that is done, 0..1.

    Returns:
        A larger picture of the same kind (a :class:`psal.Photo` for a path), with the values of ``image`` in it. Alpha
        continues with the value at the border.

    Raises:
        ValueError, TypeError: if an argument is not as described, or the image is smaller than a patch.

    >>> outpaint(torch.rand(3, 20, 30), left=4, bottom=7).shape
    torch.Size([3, 27, 34])
    """
    check_seed(seed)
    sides = {"left": left, "right": right, "top": top, "bottom": bottom}
    left, right, top, bottom = (check_count(name, pixels, 0) for name, pixels in sides.items())
    picture = open_picture(image, "image")
    height, width = picture.color.shape[1:]
    if min(height, width) < PATCH_SIZE:
        raise ValueError(f"image must be at least {PATCH_SIZE} × {PATCH_SIZE} pixels, got {width} × {height}")
    if (pixels := (height + top + bottom) * (width + left + right)) > MAX_PIXELS:
        raise ValueError(f"the result would have {pixels / 1e6:.0f} megapixels, but at most {MAX_PIXELS / 1e6:.0f} fit")
    border = left, right, top, bottom
    color = F.pad(picture.color, border)
    alpha = None if picture.alpha is None else F.pad(picture.alpha[None], border, mode="replicate")[0]
    hole = F.pad(torch.zeros(height, width, dtype=torch.bool), border, value=True)
    if hole.any():
        filled = fill_hole(FillRequest(color, hole, int(draw_seed(seed)), progress=progress))
        color.view(len(color), -1)[:, filled.target] = filled.color
    return picture.restore(color, alpha)
