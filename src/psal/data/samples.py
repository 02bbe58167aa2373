"""Pictures to try the editing on at once: they come inside scikit-image, nothing is downloaded."""

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
CAT_FACE = slice(50, 242), slice(110, 302)


@dataclass(frozen=True)
class Sample:
    """What one kind of editing takes.

    Attributes:
        name: of the editing: "inpaint", "colorize", "reconstruct" or "upscale".
        picture: uint8 ``(H, W)`` or ``(H, W, 3)``.
        mask: uint8 ``(H, W)``, 255 in the hole, for "inpaint".
        reference: uint8 ``(H, W, 3)``, for "colorize" and "reconstruct".
    """

    name: str
    picture: NDArray[Any]
    mask: NDArray[Any] | None = None
    reference: NDArray[Any] | None = None


def samples() -> list[Sample]:
    """One sample for each kind of editing, none wider or higher than 512 pixels.

    >>> [sample.name for sample in samples()]
    ['inpaint', 'colorize', 'reconstruct', 'upscale']
    """
    from skimage import data

    astronaut = data.astronaut()
    mask = Image.new("L", astronaut.shape[1::-1])
    ImageDraw.Draw(mask).polygon(SHUTTLE, fill=255)
    left, right = (view.resize(VIEW_SIZE) for view in stereo_views())
    return [
        Sample("inpaint", astronaut, mask=np.asarray(mask)),
        Sample("colorize", np.asarray(left.convert("L")), reference=np.asarray(right)),
        Sample("reconstruct", np.asarray(left), reference=np.asarray(right)),
        Sample("upscale", data.chelsea()[CAT_FACE].copy()),
    ]


def stereo_views() -> tuple[Image.Image, Image.Image]:
    """A scene from the left and from the right, 741 × 500."""
    from skimage import data

    left, right, _ = data.stereo_motorcycle()
    return Image.fromarray(left), Image.fromarray(right)
