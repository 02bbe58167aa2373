from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

from psal.models.inpainting.weights import build_generator

WriteWeights = Callable[..., Path]


@pytest.fixture
def write_weights(tmp_path: Path) -> WriteWeights:
    """Write random weights of a small network: ``write_weights(attention, seed=0)``."""

    def write(attention: str, seed: int = 0) -> Path:
        torch.manual_seed(seed)
        path = tmp_path / f"{attention}_{seed}.safetensors"
        settings = {"task": "inpaint", "attention": attention, "width": "2"}
        save_file(build_generator(attention, 2).state_dict(), path, settings)
        return path

    return write


@pytest.fixture
def scenes(tmp_path: Path) -> Path:
    """Two pictures of different sizes with masks of the same names."""
    generator = np.random.default_rng(0)
    for number, (height, width) in enumerate([(40, 48), (48, 40)]):
        coarse = Image.fromarray(generator.integers(0, 256, (5, 5, 3), np.uint8))
        hole = np.zeros((height, width), np.uint8)
        hole[10:20, 12 : 24 + number] = 255
        for folder, picture in (("images", coarse.resize((width, height))), ("masks", Image.fromarray(hole))):
            (tmp_path / "scenes" / folder).mkdir(parents=True, exist_ok=True)
            picture.save(tmp_path / "scenes" / folder / f"{number}.png")
    return tmp_path / "scenes"
