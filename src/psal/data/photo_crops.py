"""Random crops of the photographs in a folder, beside the same crops downscaled."""

from pathlib import Path

import torch
from PIL import Image
from torch import Tensor

from psal.data.degradation import KERNEL_WIDTH, downscale
from psal.data.image_folder import MAX_DRAWS, MissingDataError, fingerprint, list_pictures, open_rgb, to_pixels
from psal.seeds import seed_of_example


class DownscaledCrops:
    """An endless sequence of random crops, mirrored and turned, each with the same crop downscaled.

    A crop is cut out of the downscaled photograph, as if the whole had been downscaled.

    Args:
        root: a folder of photographs; those in folders below it count too.
        scale: factor per side between the crops.
        size: side of the small crops, in pixels.
        seed: of the draws; example i depends on it and i alone.

    Attributes:
        fingerprint: hash of the names of all files.
        broken: a line for each file that could not be used, because it cannot be read or is smaller than a crop;
            another one is drawn in its place.

    Raises:
        MissingDataError: if the folder has no pictures.
    """

    def __init__(self, root: Path, scale: int, size: int, seed: int) -> None:
        self._files = list_pictures(root)
        self._scale = scale
        self._size = size
        self._seed = seed
        self.fingerprint = fingerprint(root, self._files)
        self.broken: dict[Path, str] = {}

    def __getitem__(self, number: int) -> tuple[Tensor, Tensor]:
        """Load example ``number``: ``(3, size, size)`` and ``(3, scale · size, scale · size)``, in 0..1.

        Raises:
            MissingDataError: if no photograph could be used.
        """
        generator = torch.Generator().manual_seed(seed_of_example(self._seed, number))

        def below(count: int) -> int:
            return int(torch.randint(count, (), generator=generator))

        for _ in range(MAX_DRAWS):
            picture = self._open(self._files[below(len(self._files))])
            if picture is None:
                continue
            columns, rows = (side // self._scale for side in picture.size)
            pair = self._crop(picture, below(rows - self._size + 1), below(columns - self._size + 1))
            mirrored, turns = below(2), below(4)
            small, large = (_moved(x, bool(mirrored), turns).float().div(255) for x in pair)
            return small, large
        broken = next(iter(self.broken.values()))
        raise MissingDataError(f"none of {MAX_DRAWS} random pictures could be used; one reason is: {broken}")

    def _open(self, path: Path) -> Image.Image | None:
        """Open a picture that has room for a crop, or return None."""
        if path in self.broken:
            return None
        try:
            picture = open_rgb(path)
        except MissingDataError as error:
            self.broken[path] = str(error)
            return None
        needed = self._scale * self._size
        if min(picture.size) < needed:
            self.broken[path] = f"{path} is smaller than a crop of {needed} × {needed} pixels"
            return None
        return picture

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
