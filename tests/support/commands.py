"""The command line as tests call it, and pictures for it."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

COMMAND = (sys.executable, "-m", "psal.cli")
HEIGHT, WIDTH = 27, 35
Run = Callable[..., subprocess.CompletedProcess[str]]


def run(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """The command line as a process; whatever happens, there is no traceback."""
    done = subprocess.run(
        [*COMMAND, *map(str, arguments)], capture_output=True, text=True, timeout=300, check=False, **options
    )
    assert "Traceback" not in done.stderr
    return done


def photo(height: int = HEIGHT, width: int = WIDTH) -> NDArray[Any]:
    """Stripes with some noise, uint8 ``(H, W, 3)``."""
    rows, columns = np.mgrid[:height, :width]
    stripes = 120 + 80 * np.sin(0.9 * columns + 0.3 * rows)[..., None] * np.array([1.0, 0.6, -0.4])
    noise = np.random.default_rng(0).normal(0, 4, stripes.shape)
    return np.asarray((stripes + noise).clip(0, 255), np.uint8)


def mask(height: int = HEIGHT, width: int = WIDTH) -> NDArray[Any]:
    """A hole in the middle, uint8 ``(H, W)``."""
    hole = np.zeros((height, width), np.uint8)
    hole[height // 3 : height // 2, width // 3 : width // 2] = 255
    return hole


def save(path: Path, pixels: NDArray[Any], **options: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path, **options)
    return path


def load(path: Path) -> NDArray[Any]:
    with Image.open(path) as image:
        return np.asarray(image)


def files_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} if folder.exists() else set()
