"""DAVIS, the data set of video sequences, in its own folder layout."""

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
    except OSError as error:
        raise MissingDataError(f"{path} cannot be read: {error}") from error
    return square(picture, size)


def square(picture: Image.Image, size: int) -> Tensor:
    """An RGB picture's largest centred square, resized (bicubic) to ``(3, size, size)`` in 0..1."""
    side = min(picture.size)
    left, top = (picture.width - side) // 2, (picture.height - side) // 2
    resized = picture.crop((left, top, left + side, top + side)).resize((size, size), Image.Resampling.BICUBIC)
    return torch.from_numpy(np.array(resized)).permute(2, 0, 1).float().div(255).contiguous()
