"""Random crops of the photographs in a folder, beside the same crops downscaled."""

from pathlib import Path

import torch
from PIL import Image
from torch import Tensor

from psal.data.degradation import KERNEL_WIDTH, downscale
from psal.data.draws import draw_below, example_generator
from psal.data.image_folder import RandomPictures, to_pixels


class DownscaledCrops(RandomPictures):
    """An endless sequence of random crops, mirrored and turned, each with the same crop downscaled.

    A crop is cut out of the downscaled photograph, as if the whole had been downscaled.

    Args:
        root: a folder of photographs; those in folders below it count too.
        scale: factor per side between the crops.
        size: side of the small crops, in pixels.
        seed: of the draws; example i depends on it and i alone.

    Raises:
        MissingDataError: if the folder has no pictures.
    """

    def __init__(self, root: Path, scale: int, size: int, seed: int) -> None:
        super().__init__(root, min_side=scale * size)
        self._scale = scale
        self._size = size
        self._seed = seed

    def __getitem__(self, number: int) -> tuple[Tensor, Tensor]:
        """Load example ``number``: ``(3, size, size)`` and ``(3, scale · size, scale · size)``, in 0..1.

        Raises:
            MissingDataError: if no photograph could be used.
        """
        generator = example_generator(self._seed, number)
        picture = self.draw_picture(generator)
        columns, rows = (side // self._scale for side in picture.size)
        top = draw_below(rows - self._size + 1, generator)
        left = draw_below(columns - self._size + 1, generator)
        mirrored, turns = draw_below(2, generator), draw_below(4, generator)
        small, large = (_moved(x, bool(mirrored), turns).float().div(255) for x in self._crop(picture, top, left))
        return small, large

    def _crop(self, picture: Image.Image, top: int, left: int) -> tuple[Tensor, Tensor]:
        """Cut out small pixels from (top, left) on, and the large pixels that they stand for: uint8."""
        scale, size = self._scale, self._size
        # The kernel sees two small pixels to each side, so a margin of four makes up for what lies beyond the cut.
        margins = min(top, KERNEL_WIDTH), min(left, KERNEL_WIDTH)
        corner = scale * (left - margins[1]), scale * (top - margins[0])
        end = (min(picture.width, scale * (left + size + KERNEL_WIDTH)),
               min(picture.height, scale * (top + size + KERNEL_WIDTH)))  # fmt: skip
        around = to_pixels(picture.crop((*corner, *end)))
        small = downscale(around, scale)[:, margins[0] :, margins[1] :][:, :size, :size]
        large = around[:, scale * margins[0] :, scale * margins[1] :][:, : scale * size, : scale * size]
        return small, large


def _moved(image: Tensor, mirrored: bool, turns: int) -> Tensor:
    """Mirror and turn an image ``(3, H, W)`` by quarter turns."""
    return torch.rot90(image.flip(2) if mirrored else image, turns, (1, 2)).contiguous()
