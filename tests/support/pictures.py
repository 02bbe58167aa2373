"""A small folder of pictures."""

from pathlib import Path

import numpy as np
from PIL import Image


def write_pictures(root: Path, count: int = 4, sizes: tuple[tuple[int, int], ...] = ((47, 61), (70, 50))) -> Path:
    """Write smooth random pictures of sizes (height, width) in turn, in two folders, as PNG and JPEG."""
    generator = np.random.default_rng(0)
    for number in range(count):
        height, width = sizes[number % len(sizes)]
        coarse = Image.fromarray(generator.integers(0, 256, (6, 6, 3), np.uint8))
        folder = root / ("a" if number % 2 else "b")
        folder.mkdir(parents=True, exist_ok=True)
        coarse.resize((width, height), Image.Resampling.BICUBIC).save(
            folder / f"{number:03d}.{'png' if number % 2 else 'jpg'}"
        )
    return root
