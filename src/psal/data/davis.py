"""DAVIS, the data set of video sequences, in its own folder layout."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from psal.errors import UsageError

FRAMES = Path("JPEGImages", "480p")
LISTS = Path("ImageSets", "2016")
LAYOUT = f"{FRAMES}/<sequence>/00000.jpg … and {LISTS}/train.txt and val.txt"
SPLITS = ("train", "val")
MOST_DRAWS = 1000  # of pairs, until one can be read


class MissingDataError(UsageError):
    """The data folder is not there, or not laid out as expected."""


class Pair(NamedTuple):
    """A frame and an earlier one of the same sequence."""

    sequence: str
    number: int  # of the frame
    frame: Path
    reference: Path


def sequences(root: Path, split: str) -> list[str]:
    """Names of the sequences of a split, "train" or "val".

    Raises:
        MissingDataError: if the split's list is not there.
    """
    path = root / LISTS / f"{split}.txt"
    if not path.is_file():
        hint = f", as {root / 'DAVIS'} seems to be" if (root / "DAVIS" / LISTS).is_dir() else ""
        raise MissingDataError(f"{path} is not there: the data must be DAVIS's folder, with {LAYOUT}{hint}")
    return path.read_text().split()


def frames(root: Path, sequence: str) -> list[Path]:
    """Files of a sequence in order.

    Raises:
        MissingDataError: if there are none.
    """
    found = sorted((root / FRAMES / sequence).glob("*.jpg"))
    if not found:
        raise MissingDataError(
            f"{root / FRAMES / sequence} has no frames: the data must be DAVIS's folder, with {LAYOUT}"
        )
    return found


def pairs(root: Path, count: int, apart: int) -> list[Pair]:
    """Frames ``apart``, 2 · ``apart``, … of all sequences, each with the one ``apart`` before it.

    The first of every sequence come first, then the second ones, and so on.

    Raises:
        MissingDataError: if there are not so many.
    """
    found = []
    for split in SPLITS:
        for sequence in sequences(root, split):
            files = frames(root, sequence)
            found += [
                (turn, Pair(sequence, number, files[number], files[number - apart]))
                for turn, number in enumerate(range(apart, len(files), apart))
            ]
    found.sort(key=lambda entry: entry[0])  # stable: sequences keep their order within a turn
    if len(found) < count:
        raise MissingDataError(
            f"{root} has only {len(found)} pairs of frames {apart} apart, not {count}: ask for fewer"
        )
    return [pair for _, pair in found[:count]]


def load_square(path: Path, size: int) -> Tensor:
    """A picture's largest centred square, resized (bicubic) to ``(3, size, size)`` in 0..1.

    Raises:
        MissingDataError: if the file is not a picture that can be read.
    """
    try:
        with Image.open(path) as file:
            picture = file.convert("RGB")
    except MemoryError:
        raise
    except Exception as error:  # decoders of a broken file raise errors of any kind
        raise MissingDataError(f"{path} cannot be read: {error}") from error
    return square(picture, size)


def square(picture: Image.Image, size: int) -> Tensor:
    """An RGB picture's largest centred square, resized (bicubic) to ``(3, size, size)`` in 0..1."""
    side = min(picture.size)
    left, top = (picture.width - side) // 2, (picture.height - side) // 2
    resized = picture.crop((left, top, left + side, top + side)).resize((size, size), Image.Resampling.BICUBIC)
    return torch.from_numpy(np.array(resized)).permute(2, 0, 1).float().div(255).contiguous()


class TrainingPairs:
    """Two random frames of one random sequence, as many times as wanted: the same for the same number.

    Args:
        root: DAVIS's folder.
        split: "train" or "val".
        size: of the pictures.
        seed: of the draw.

    Attributes:
        fingerprint: of the names of all sequences and frames.
        broken: what is wrong with each file that could not be read; another one is drawn in its place.

    Raises:
        MissingDataError: if the folder is not DAVIS's.
    """

    def __init__(self, root: Path, split: str, size: int, seed: int) -> None:
        self._files = [frames(root, name) for name in sequences(root, split)]
        if not self._files or max(map(len, self._files)) < 2:
            raise MissingDataError(f"{root} has no sequence of two frames or more in its {split} split")
        self._size = size
        self._seed = seed
        names = "\n".join(f"{path.parent.name}/{path.name}" for files in self._files for path in files)
        self.fingerprint = hashlib.sha256(names.encode()).hexdigest()[:16]
        self._loaded: dict[Path, Tensor] = {}  # uint8, so that all of DAVIS fits
        self.broken: dict[Path, str] = {}

    def __getitem__(self, number: int) -> tuple[Tensor, Tensor]:
        """Example ``number``: a frame and another one of its sequence, each ``(3, size, size)`` in 0..1."""
        generator = torch.Generator().manual_seed(self._seed * 2**32 + number)

        def below(count: int) -> int:
            return int(torch.randint(count, (), generator=generator))

        for _ in range(MOST_DRAWS):
            files = self._files[below(len(self._files))]
            first, second = files[below(len(files))], files[below(len(files))]
            if first == second:
                continue
            pictures = self._load(first), self._load(second)
            if pictures[0] is not None and pictures[1] is not None:
                return pictures[0], pictures[1]
        raise MissingDataError(
            f"of {MOST_DRAWS} pairs of frames none could be read, among them {next(iter(self.broken))}"
        )

    def _load(self, path: Path) -> Tensor | None:
        if path in self.broken:
            return None
        if path not in self._loaded:
            try:
                self._loaded[path] = (load_square(path, self._size) * 255).round().byte()
            except MissingDataError as error:
                self.broken[path] = str(error)
                return None
        return self._loaded[path].float() / 255


def distant_pairs(root: Path, split: str, distances: Sequence[int]) -> list[tuple[int, Pair]]:
    """The middle frame of each sequence, with the frames so far before and after it as references.

    Returns:
        Distance and pair; those that a short sequence has not are left out.
    """
    found = []
    for sequence in sequences(root, split):
        files = frames(root, sequence)
        middle = len(files) // 2
        for distance in distances:
            found += [
                (distance, Pair(sequence, middle, files[middle], files[at]))
                for at in (middle - distance, middle + distance)
                if 0 <= at < len(files)
            ]
    return found
