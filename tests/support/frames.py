"""A tiny data set in the layout of DAVIS."""

from pathlib import Path

import numpy as np
from PIL import Image


def write_davis(root: Path, sequences: dict[str, tuple[str, int]], width: int = 40, height: int = 24) -> Path:
    """Write sequences, given by name with split and number of frames; each pans over a random image."""
    generator = np.random.default_rng(0)
    lists = root / "ImageSets" / "2016"
    lists.mkdir(parents=True)
    for split in ("train", "val"):
        (lists / f"{split}.txt").write_text("".join(f"{n}\n" for n, (own, _) in sequences.items() if own == split))
    for name, (_, frames) in sequences.items():
        folder = root / "JPEGImages" / "480p" / name
        folder.mkdir(parents=True)
        coarse = generator.integers(0, 256, (height // 4, width // 4, 3), np.uint8)
        picture = np.asarray(Image.fromarray(coarse).resize((width, height)))
        for number in range(frames):
            Image.fromarray(np.roll(picture, -number, 1)).save(folder / f"{number:05d}.jpg")
    return root
