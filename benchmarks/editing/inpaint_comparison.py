"""inpaint and other ways of filling a hole: quality, time and memory on the same pictures, a cell per method."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from benchmarks.editing.beds import BEDS, Bed, MaskedPhotograph
from benchmarks.editing.methods import METHODS, Method, Pixels
from benchmarks.editing.photographs import Photographs
from benchmarks.editing.quality import hole_quality
from benchmarks.runner import Group
from psal.errors import UsageError
from psal.experiments.inpainting.lpips import LPIPS, load_lpips
from psal.measure.comparison import Column, row_of
from psal.measure.record import Cell

MB = 1e6


def groups(photographs: Photographs, lpips: Path) -> dict[str, Group]:
    """Cells by name, ``bed/method``."""
    return {
        f"{bed}/{method}": partial(_cell, method, BEDS[bed], photographs, lpips) for bed in BEDS for method in METHODS
    }


def load_network(photographs: Photographs, lpips: Path) -> LPIPS:
    """Return the network of LPIPS; for a smoke test, an untrained one.

    Raises:
        psal.errors.UsageError: if the archive is missing.
    """
    if not photographs.max_side:
        return load_lpips(lpips)
    torch.manual_seed(0)
    return LPIPS().requires_grad_(False)


def _cell(name: str, bed: Bed, photographs: Photographs, lpips: Path) -> Cell:
    method = METHODS[name]
    if not method.is_installed:
        raise UsageError(f"{method.module} is not installed: pip install 'psal[compare]'")
    network = load_network(photographs, lpips)
    pictures = list(islice(bed.pictures(photographs), bed.slow_count if method.is_slow else None))
    filled, cost = fill_in_fresh_process(name, pictures)
    scores: dict[str, list[float]] = {"LPIPS": [], "PSNR": [], "SSIM": [], "variance": []}
    for picture, result in zip(pictures, filled, strict=True):
        result = np.where(picture.hole[..., None], result, picture.image)
        for metric, value in zip(scores, _quality(picture, result, network), strict=True):
            scores[metric].append(value)
    return _row(method, bed, [picture.name for picture in pictures], scores, cost)


def _row(
    method: Method, bed: Bed, names: list[str], scores: Mapping[str, list[float]], cost: Mapping[str, Any]
) -> Cell:
    columns = [
        Column("LPIPS", scores["LPIPS"], compared="difference"),
        Column("PSNR, dB", scores["PSNR"]),
        Column("SSIM", scores["SSIM"]),
        Column("local variance kept", scores["variance"]),
        Column("time, s", cost["seconds"], summary="median", compared="ratio"),
        Column("memory beyond the picture, MB", [(cost["peak"] - cost["before"]) / MB], compared="ratio"),
        Column("memory of the process, MB", [cost["peak"] / MB], compared="ratio"),
    ]
    return row_of(bed.title, method.title, names, columns, cpu_seconds=cost["cpu_seconds"])


def fill_in_fresh_process(method: str, pictures: list[MaskedPhotograph]) -> tuple[list[Pixels], dict[str, Any]]:
    """Fill pictures; what is in a hole is hidden from the method.

    Returns:
        The filled pictures, and what :func:`benchmarks.editing.fill_worker.fill_all` returns.

    Raises:
        RuntimeError: if the process fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        files = [_write(picture, Path(folder, str(index))) for index, picture in enumerate(pictures)]
        finished = subprocess.run(
            [sys.executable, "-m", "benchmarks.editing.fill_worker"],
            input=json.dumps({"method": method, "files": files}),
            env=_environment(METHODS[method].threads),
            capture_output=True,
            text=True,
        )
        if finished.returncode:
            last = (finished.stderr.strip().splitlines() or [f"exit code {finished.returncode}"])[-1]
            raise RuntimeError(f"{METHODS[method].title} failed: {last}")
        return [np.asarray(Image.open(paths["filled"])) for paths in files], json.loads(finished.stdout)


def _environment(threads: int) -> dict[str, str]:
    """How threads wait is left to the method, as for somebody who has set nothing."""
    kept = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    return kept | {"OMP_NUM_THREADS": str(threads)}


def _write(picture: MaskedPhotograph, folder: Path) -> dict[str, str]:
    folder.mkdir()
    paths = {name: str(folder / f"{name}.png") for name in ("image", "hole", "filled")}
    hidden = np.where(picture.hole[..., None], np.uint8(127), picture.image)
    Image.fromarray(hidden).save(paths["image"], compress_level=1)
    Image.fromarray(picture.hole.astype(np.uint8) * 255).save(paths["hole"])
    return paths


def _quality(picture: MaskedPhotograph, filled: Pixels, network: LPIPS) -> tuple[float, ...]:
    a, b = (torch.from_numpy(np.array(x)).permute(2, 0, 1)[None] / 255 for x in (filled, picture.image))
    with torch.no_grad():
        distance = network(a, b).item()
    return distance, *hole_quality(filled, picture.image, picture.hole)
