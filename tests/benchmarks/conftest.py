"""Data for the benchmarks."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from support.frames import write_davis


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data folder with small pictures."""
    folder = tmp_path / "data"
    write_davis(folder / "DAVIS", {"bear": ("train", 12), "swan": ("val", 12)}, width=64, height=48)
    generator = np.random.default_rng(0)
    scenes = ("scenes/places512_object/images/1.png", "scenes/places256_freeform/images/1.jpg")
    for name in ("highres/images/hifill_1.jpg", *scenes, "Urban100/HR/1.png"):
        path = folder / name
        path.parent.mkdir(parents=True)
        pixels = generator.integers(0, 256, (24, 32, 3), np.uint8)
        Image.fromarray(pixels).resize((128, 96)).save(path)
    mask = np.zeros((96, 128), np.uint8)
    mask[40:52, 50:66] = 255
    for name in ("highres/images/hifill_1.jpg", *scenes):
        path = (folder / name).parents[1] / "masks" / f"{Path(name).stem}.png"
        path.parent.mkdir()
        Image.fromarray(mask).save(path)
    return folder
