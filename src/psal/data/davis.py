"""The DAVIS data set of video sequences, in its own folder layout."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from PIL import Image
from torch import Tensor

from psal.data.draws import draw_below, example_generator
from psal.data.image_folder import MAX_DRAWS, MissingDataError, open_rgb, to_tensor

FRAMES = Path("JPEGImages", "480p")
LISTS = Path("ImageSets", "2016")
LAYOUT = f"{FRAMES}/<sequence>/00000.jpg … and {LISTS}/train.txt and val.txt"
SPLITS = ("train", "val")
MAX_HELD_OUT = 2  # sequences at the end of the train list that no network is trained on


class Pair(NamedTuple):
    """A frame and another one of the same sequence, its reference."""

    sequence: str
    number: int  # position of the frame in its sequence
    frame: Path
    reference: Path


def sequences(root: Path, split: str) -> list[str]:
    """Return the names of the sequences of a split.

    Args:
        root: folder of the DAVIS data set.
        split: "train" or "val", as DAVIS has them, or a part of its train split: "training" or "holdout", the last two
            sequences (fewer, where none would be left to train on).

    Raises:
        MissingDataError: if the split's list is missing.
    """
    if split in ("training", "holdout"):
        train = sequences(root, "train")
        count = max(len(train) - MAX_HELD_OUT, min(len(train), 1))
        return train[:count] if split == "training" else train[count:]
    path = root / LISTS / f"{split}.txt"
    if not path.is_file():
        hint = f", as {root / 'DAVIS'} seems to be" if (root / "DAVIS" / LISTS).is_dir() else ""
        raise MissingDataError(f"{path} does not exist: the data must be DAVIS's folder, with {LAYOUT}{hint}")
    return path.read_text().split()


def frames(root: Path, sequence: str) -> list[Path]:
    """Return the files of a sequence in order.

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
    """Return the first ``count`` pairs of a frame and the one ``apart`` frames before it.

    The frames are number ``apart``, 2 · ``apart``, … of each sequence. Pairs are ordered by that multiple, then by
    sequence.

    Raises:
        MissingDataError: if there are fewer.
    """
    found = []
    for split in SPLITS:
        for sequence in sequences(root, split):
            files = frames(root, sequence)
            found += [
                (rank, Pair(sequence, number, files[number], files[number - apart]))
                for rank, number in enumerate(range(apart, len(files), apart))
            ]
    found.sort(key=lambda entry: entry[0])  # stable: sequences keep their order within a rank
    if len(found) < count:
        raise MissingDataError(
            f"{root} has only {len(found)} pairs of frames {apart} apart, not {count}: ask for fewer"
        )
    return [pair for _, pair in found[:count]]


def load_resized(path: Path, height: int, width: int) -> Tensor:
    """Load an image, resized (bicubic) without cropping to ``(3, height, width)`` in 0..1.

    Raises:
        MissingDataError: if the file cannot be read as an image.
    """
    return to_tensor(open_rgb(path).resize((width, height), Image.Resampling.BICUBIC))


class TrainingPairs:
    """An endless sequence of pairs of random frames, each pair from one random sequence.

    Args:
        root: folder of the DAVIS data set.
        split: a split of :func:`sequences`.
        size: side of the square images, in pixels, to which frames are squeezed.
        seed: seed of the draws; example i depends on it and i alone.

    Attributes:
        fingerprint: hash of the names of all sequences and frames.
        broken: the error of each file that could not be read; another one is drawn in its place.

    Raises:
        MissingDataError: if the folder is not a DAVIS data set.
    """

    def __init__(self, root: Path, split: str, size: int, seed: int) -> None:
        self._files = [frames(root, name) for name in sequences(root, split)]
        if not self._files or max(map(len, self._files)) < 2:
            raise MissingDataError(f"{root} has no sequence with two or more frames in its {split} split")
        self._size = size
        self._seed = seed
        names = "\n".join(f"{path.parent.name}/{path.name}" for files in self._files for path in files)
        self.fingerprint = hashlib.sha256(names.encode()).hexdigest()[:16]
        self._loaded: dict[Path, Tensor] = {}  # uint8, so that all of DAVIS fits into memory
        self.broken: dict[Path, str] = {}

    def __getitem__(self, number: int) -> tuple[Tensor, Tensor]:
        """Load example ``number``: a frame and another one of its sequence, each ``(3, size, size)`` in 0..1."""
        generator = example_generator(self._seed, number)
        for _ in range(MAX_DRAWS):
            files = self._files[draw_below(len(self._files), generator)]
            first, second = (files[draw_below(len(files), generator)] for _ in range(2))
            if first == second:
                continue
            pictures = self._load(first), self._load(second)
            if pictures[0] is not None and pictures[1] is not None:
                return pictures[0], pictures[1]
        broken = next(iter(self.broken))
        raise MissingDataError(f"none of {MAX_DRAWS} random pairs of frames could be read; one broken file is {broken}")

    def _load(self, path: Path) -> Tensor | None:
        if path in self.broken:
            return None
        if path not in self._loaded:
            try:
                self._loaded[path] = (load_resized(path, self._size, self._size) * 255).round().byte()
            except MissingDataError as error:
                self.broken[path] = str(error)
                return None
        return self._loaded[path].float() / 255


def distant_pairs(root: Path, split: str, distances: Sequence[int]) -> list[tuple[int, Pair]]:
    """Pair the middle frame of each sequence with the frames at some distances before and after it.

    Returns:
        Tuples of distance and pair, without those beyond the ends of a sequence.
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
