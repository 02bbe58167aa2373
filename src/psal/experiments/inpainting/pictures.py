"""Test pictures with holes: given ones, or random ones in the pictures of a folder."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from torch import Tensor

from psal.data.draws import example_generator
from psal.data.image_folder import MissingDataError, list_pictures, load_square, open_rgb, to_tensor
from psal.data.masks import random_hole
from psal.io.masks import open_mask

IMAGES, MASKS = "images", "masks"


class MaskedPicture(NamedTuple):
    """A picture and its hole.

    Attributes:
        name: of the file, without its suffix.
        truth: ``(1, 3, H, W)`` in 0..1.
        hole: bool ``(1, 1, H, W)``.
    """

    name: str
    truth: Tensor
    hole: Tensor


@dataclass(frozen=True)
class MaskedPictures:
    """Pictures of a folder, each with a hole.

    If the folder has ``images`` and ``masks``, each picture has the mask of the same name and keeps its size. Otherwise
    all pictures below it are cropped to squares and get random holes, which depend on their order alone.

    Attributes:
        folder: the folder.
        size: side of the squares.
        hole: side of the largest rectangular hole.
        masks: "rectangles", "free-form" or "both".
        count: number of pictures; None for all.
    """

    folder: Path
    size: int = 256
    hole: int = 128
    masks: str = "rectangles"
    count: int | None = None

    @property
    def has_masks(self) -> bool:
        return (self.folder / IMAGES).is_dir() and (self.folder / MASKS).is_dir()

    def files(self) -> list[Path]:
        """Return the files of the pictures.

        Raises:
            psal.data.image_folder.MissingDataError: if there are none.
        """
        return list_pictures(self.folder / IMAGES if self.has_masks else self.folder)[: self.count]

    def __len__(self) -> int:
        return len(self.files())

    def __iter__(self) -> Iterator[MaskedPicture]:
        """Load the pictures.

        Raises:
            psal.data.image_folder.MissingDataError: if a file cannot be read, or a picture has no mask.
        """
        for number, path in enumerate(self.files()):
            yield self._with_own_mask(path) if self.has_masks else self._with_random_hole(path, number)

    def _with_own_mask(self, path: Path) -> MaskedPicture:
        truth = to_tensor(open_rgb(path))
        found = [mask for mask in sorted((self.folder / MASKS).iterdir()) if mask.stem == path.stem]
        if not found:
            raise MissingDataError(f"{path} has no mask: expected {self.folder / MASKS / path.name}")
        hole = open_mask(found[0], (truth.shape[1], truth.shape[2]))
        if not hole.any() or hole.all():
            raise MissingDataError(
                f"{found[0]} must be white in a part of the picture, not in {'all' if hole.any() else 'none'}"
            )
        return MaskedPicture(path.stem, truth[None], hole[None, None])

    def _with_random_hole(self, path: Path, number: int) -> MaskedPicture:
        hole = random_hole(self.masks, self.size, self.hole, example_generator(0, number))
        return MaskedPicture(path.stem, load_square(path, self.size)[None], hole.mask[None, None])
