"""The maps that are measured on: frames 10 apart of DAVIS sequences, and random convolutions of them."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from torch import Tensor

APART = 10
CHANNELS = 16
LAYOUT = "DAVIS/JPEGImages/480p/<sequence>/%05d.jpg and DAVIS/ImageSets/2016/{train,val}.txt"


class MissingDataError(FileNotFoundError):
    """The data folder is not there, or not laid out as expected."""


@dataclass(frozen=True)
class Pair:
    """Two frames of one sequence: ``(1, 3, size, size)`` in 0..1, and their features ``(1, 16, size, size)``."""

    sequence: str
    image: Tensor
    reference: Tensor
    query: Tensor
    key: Tensor


def sequences(data: Path) -> list[str]:
    """Names of all sequences, validation first.

    Raises:
        MissingDataError: if a list of them is not found.
    """
    names: list[str] = []
    for split in ("val", "train"):
        path = data / "DAVIS" / "ImageSets" / "2016" / f"{split}.txt"
        if not path.is_file():
            raise MissingDataError(f"no DAVIS frames in {data}: expected {LAYOUT} there")
        names += path.read_text().split()
    return names


def load_pair(data: Path, sequence: str, size: int) -> Pair:
    """Frames 0 and 10 of a sequence, their largest centred square resized (bicubic) to ``size``.

    Raises:
        MissingDataError: if a frame is not found.
    """
    folder = data / "DAVIS" / "JPEGImages" / "480p" / sequence
    image, reference = (_load(folder / f"{number:05d}.jpg", size) for number in (0, APART))
    return Pair(sequence, image, reference, features(image), features(reference))


def features(image: Tensor) -> Tensor:
    """16 random 3×3 convolutions with ReLU, always the same ones."""
    generator = torch.Generator().manual_seed(0)
    fan_in = image.shape[1] * 9
    weight = torch.randn(CHANNELS, image.shape[1], 3, 3, generator=generator) / fan_in**0.5
    return F.conv2d(image, weight, padding=1).relu()


def _load(path: Path, size: int) -> Tensor:
    if not path.is_file():
        raise MissingDataError(f"{path} is missing: expected {LAYOUT}")
    with Image.open(path) as file:
        frame = file.convert("RGB")
    side = min(frame.size)
    left, top = (frame.width - side) // 2, (frame.height - side) // 2
    square = frame.crop((left, top, left + side, top + side)).resize((size, size), Image.Resampling.BICUBIC)
    return torch.from_numpy(np.array(square)).permute(2, 0, 1)[None].float().div(255).contiguous()
