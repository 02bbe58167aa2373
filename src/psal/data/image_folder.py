"""Folders of pictures: their files, loading them, and drawing one at random."""

import hashlib
from collections import Counter
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageOps
from torch import Tensor

from psal.data.draws import draw_below
from psal.errors import UsageError

SUFFIXES = {".bmp", ".jpeg", ".jpg", ".png", ".ppm", ".tif", ".tiff", ".webp"}
MAX_DRAWS = 1000  # of random files, until one can be read


class MissingDataError(UsageError):
    """The data folder is missing, incomplete or laid out in another way."""


def list_pictures(folder: Path) -> list[Path]:
    """Return the picture files in a folder and all folders below it, in a fixed order.

    Hidden files and folders are left out.

    Raises:
        MissingDataError: if there is no such folder, or no picture in it.
    """
    if not folder.is_dir():
        raise MissingDataError(f"{folder} is not a folder: give a folder of pictures")
    found = sorted(
        path
        for path in folder.rglob("*")
        if path.suffix.lower() in SUFFIXES and not any(part[0] == "." for part in path.relative_to(folder).parts)
    )
    if not found:
        raise MissingDataError(f"{folder} has no pictures: expected files such as {', '.join(sorted(SUFFIXES))}")
    return found


def fingerprint(root: Path, files: list[Path]) -> str:
    """Return a hash of the files' paths below a folder, which tells one data set from another."""
    names = "\n".join(path.relative_to(root).as_posix() for path in files)
    return hashlib.sha256(names.encode(errors="surrogateescape")).hexdigest()[:16]


def names_of(root: Path, files: list[Path]) -> dict[str, Path]:
    """Name the pictures below a folder: by the stem if no other has it, else by the path, with its suffix if needed.

    >>> list(names_of(Path("x"), [Path("x/a.png"), Path("x/day/b.png"), Path("x/night/b.png")]))
    ['a', 'day/b', 'night/b']
    """
    paths = [path.relative_to(root) for path in files]
    candidates = [(path.stem, path.with_suffix("").as_posix(), path.as_posix()) for path in paths]
    counts = [Counter(names) for names in zip(*candidates, strict=True)]
    named = (next(name for name, count in zip(names, counts, strict=True) if count[name] == 1) for names in candidates)
    return dict(zip(named, files, strict=True))


def open_rgb(path: Path) -> Image.Image:
    """Open a picture as RGB, upright by its orientation tag.

    Raises:
        MissingDataError: if the file cannot be read as a picture.
    """
    try:
        with Image.open(path) as file:
            return ImageOps.exif_transpose(file).convert("RGB")
    except MemoryError:
        raise
    except Exception as error:  # decoders raise errors of any kind on a broken file
        raise MissingDataError(f"{path} cannot be read: {error}") from error


def to_pixels(picture: Image.Image) -> Tensor:
    """Convert an RGB image to uint8 ``(3, H, W)``."""
    return torch.from_numpy(np.array(picture)).permute(2, 0, 1).contiguous()


def to_tensor(picture: Image.Image) -> Tensor:
    """Convert an RGB image to ``(3, H, W)`` in 0..1."""
    return to_pixels(picture).float().div(255)


def to_picture(image: Tensor) -> Image.Image:
    """Convert RGB ``(3, H, W)`` in 0..1 to a picture of 8 bits per channel; values beyond 0..1 are clamped."""
    return Image.fromarray(image.clamp(0, 1).mul(255).round().byte().permute(1, 2, 0).numpy())


def load_pixels(path: Path) -> Tensor:
    """Load a picture as uint8 ``(3, H, W)``.

    Raises:
        MissingDataError: if the file cannot be read as a picture.
    """
    return to_pixels(open_rgb(path))


def load_square(path: Path, size: int) -> Tensor:
    """Load an image's largest centered square, resized (bicubic) to ``(3, size, size)`` in 0..1.

    Raises:
        MissingDataError: if the file cannot be read as an image.
    """
    return square(open_rgb(path), size)


def square(picture: Image.Image, size: int) -> Tensor:
    """Crop an RGB image to its largest centered square, resized (bicubic) to ``(3, size, size)`` in 0..1."""
    side = min(picture.size)
    left, top = (picture.width - side) // 2, (picture.height - side) // 2
    resized = picture.crop((left, top, left + side, top + side)).resize((size, size), Image.Resampling.BICUBIC)
    return to_tensor(resized)


class RandomPictures:
    """The pictures in a folder, drawn at random. Files that cannot be used are skipped.

    Args:
        root: the folder; pictures in folders below it count too.
        min_side: pictures with a shorter side are not used.

    Attributes:
        fingerprint: hash of the names of all files.
        broken: a line for each file drawn so far that cannot be used; another one was drawn in its place.

    Raises:
        MissingDataError: if the folder has no pictures.
    """

    def __init__(self, root: Path, min_side: int = 1) -> None:
        self._files = list_pictures(root)
        self._min_side = min_side
        self.fingerprint = fingerprint(root, self._files)
        self.broken: dict[Path, str] = {}

    def draw_picture(self, generator: torch.Generator) -> Image.Image:
        """Open the RGB picture that a generator's next random numbers choose.

        Raises:
            MissingDataError: if none of many draws can be used.
        """
        for _ in range(MAX_DRAWS):
            picture = self._open(self._files[draw_below(len(self._files), generator)])
            if picture is not None:
                return picture
        reason = next(iter(self.broken.values()))
        raise MissingDataError(f"none of {MAX_DRAWS} random pictures could be used; one reason is: {reason}")

    def _open(self, path: Path) -> Image.Image | None:
        """Open a picture, or return None if it cannot be used."""
        if path in self.broken:
            return None
        try:
            picture = open_rgb(path)
        except MissingDataError as error:
            self.broken[path] = str(error)
            return None
        if min(picture.size) < self._min_side:
            self.broken[path] = f"{path} is smaller than a crop of {self._min_side} × {self._min_side} pixels"
            return None
        return picture
