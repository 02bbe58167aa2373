"""The maps that are measured on: frames 10 apart of DAVIS sequences, and random convolutions of them."""

from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from psal.data import davis
from psal.experiments.feature_maps import features

APART = 10
LAYOUT = f"DAVIS in it: {davis.LAYOUT}"


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
        psal.data.davis.MissingDataError: if a list of them is not found.
    """
    return [name for split in ("val", "train") for name in davis.sequences(data / "DAVIS", split)]


def load_pair(data: Path, sequence: str, size: int) -> Pair:
    """Frames 0 and 10 of a sequence, their largest centred square resized (bicubic) to ``size``.

    Raises:
        psal.data.davis.MissingDataError: if a frame is not found.
    """
    files = davis.frames(data / "DAVIS", sequence)
    image, reference = (davis.load_square(files[number], size)[None] for number in (0, APART))
    return Pair(sequence, image, reference, features(image), features(reference))
