"""Random crops of the pictures in a folder."""

from pathlib import Path

import torch
from PIL import Image
from torch import Tensor

from psal.data.draws import draw_below, example_generator
from psal.data.image_folder import RandomPictures, to_tensor


class RandomCrops(RandomPictures):
    """An endless sequence of random square crops of the pictures in a folder, half of them mirrored.

    Args:
        root: the folder; pictures in folders below it count too.
        size: side of the crops, in pixels. Smaller pictures are enlarged.
        seed: seed of the draws; crop i depends on it and i alone.

    Raises:
        MissingDataError: if the folder has no pictures.
    """

    def __init__(self, root: Path, size: int, seed: int) -> None:
        super().__init__(root)
        self._size = size
        self._seed = seed

    def __getitem__(self, number: int) -> Tensor:
        """Load crop ``number``: ``(3, size, size)`` in 0..1."""
        return self.draw(example_generator(self._seed, number))

    def draw(self, generator: torch.Generator) -> Tensor:
        """Load the crop ``(3, size, size)`` that a generator's next random numbers choose."""
        picture = self._at_least_crop_size(self.draw_picture(generator))
        left = draw_below(picture.width - self._size + 1, generator)
        top = draw_below(picture.height - self._size + 1, generator)
        crop = to_tensor(picture.crop((left, top, left + self._size, top + self._size)))
        return crop.flip(2) if draw_below(2, generator) else crop

    def _at_least_crop_size(self, picture: Image.Image) -> Image.Image:
        """Enlarge a picture until it has room for a crop."""
        shorter = min(picture.size)
        if shorter >= self._size:
            return picture
        width, height = (max(self._size, round(side * self._size / shorter)) for side in picture.size)
        return picture.resize((width, height), Image.Resampling.BICUBIC)
