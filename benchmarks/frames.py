"""Maps to measure the layer on: pairs of DAVIS frames and random convolutions of them."""

from dataclasses import dataclass, replace
from pathlib import Path

from torch import Tensor

from psal.data import davis
from psal.data.image_folder import load_square
from psal.experiments.feature_maps import features

FRAME_DISTANCE = 10
LAYOUT = f"DAVIS in it: {davis.LAYOUT}"


@dataclass(frozen=True)
class Pair:
    """Two frames of one sequence, as maps to attend between.

    Attributes:
        sequence: name of the sequence.
        image, reference: the frames, each ``(1, 3, size, size)`` in 0..1.
        query, key: their features, each ``(1, 16, size, size)``.
    """

    sequence: str
    image: Tensor
    reference: Tensor
    query: Tensor
    key: Tensor

    def as_rgb(self) -> "Pair":
        """The same pair with the frames themselves as query and key."""
        return replace(self, query=self.image, key=self.reference)


def sequences(data: Path) -> list[str]:
    """Names of all sequences, those of the val split first.

    Raises:
        psal.data.image_folder.MissingDataError: if the list of a split is missing.
    """
    return [name for split in ("val", "train") for name in davis.sequences(data / "DAVIS", split)]


def load_pair(data: Path, sequence: str, size: int) -> Pair:
    """Frames 0 and 10 of a sequence, their largest centered square resized (bicubic) to ``size``.

    Raises:
        psal.data.image_folder.MissingDataError: if a frame is missing.
    """
    files = davis.frames(data / "DAVIS", sequence)
    image, reference = (load_square(files[index], size)[None] for index in (0, FRAME_DISTANCE))
    return Pair(sequence, image, reference, features(image), features(reference))
