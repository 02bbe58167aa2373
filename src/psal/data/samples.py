"""Sample pictures, bundled with scikit-image: nothing is downloaded."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

VIEW_SIZE = 512, 345  # width, height of the stereo views
SHUTTLE = (
    *((396, 0), (441, 0), (443, 36), (458, 42), (460, 200), (464, 240), (476, 272), (476, 292)),
    *((362, 292), (364, 262), (349, 230), (349, 214), (376, 182), (374, 60), (380, 34), (394, 34)),
)  # x, y of the outline of the model behind the astronaut
GALAXIES = slice(100, 484), slice(100, 612)  # rows, columns of a part of the sky
CAT_FACE = slice(50, 242), slice(110, 302)  # rows, columns


@dataclass(frozen=True)
class Sample:
    """Pictures to try one edit on.

    Attributes:
        edit: its name in :data:`psal.editing.registry.EDITS`.
        picture: uint8 ``(H, W)`` or ``(H, W, 3)``.
        partner: second picture if the edit takes one: a mask, uint8 ``(H, W)``, 255 in the hole, or a reference,
            uint8 ``(H, W, 3)``.
    """

    edit: str
    picture: NDArray[Any]
    partner: NDArray[Any] | None = None


def samples() -> list[Sample]:
    """One sample per edit, at most 512 pixels wide and high.

    >>> [sample.edit for sample in samples()]
    ['inpaint', 'outpaint', 'colorize', 'reconstruct', 'upscale']
    """
    from skimage import data

    astronaut = data.astronaut()
    mask = Image.new("L", astronaut.shape[1::-1])
    ImageDraw.Draw(mask).polygon(SHUTTLE, fill=255)
    left, right = (view.resize(VIEW_SIZE) for view in stereo_views())
    return [
        Sample("inpaint", astronaut, np.asarray(mask)),
        Sample("outpaint", data.hubble_deep_field()[GALAXIES].copy()),
        Sample("colorize", np.asarray(left.convert("L")), np.asarray(right)),
        Sample("reconstruct", np.asarray(left), np.asarray(right)),
        Sample("upscale", data.chelsea()[CAT_FACE].copy()),
    ]


def stereo_views() -> tuple[Image.Image, Image.Image]:
    """Left and right view of one scene, 741 × 500 pixels."""
    from skimage import data

    left, right, _ = data.stereo_motorcycle()
    return Image.fromarray(left), Image.fromarray(right)
