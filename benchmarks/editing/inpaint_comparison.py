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
    names = []
    for picture, result in zip(pictures, filled, strict=True):
        if result is None:
            continue
        names.append(picture.name)
        result = np.where(picture.hole[..., None], result, picture.image)
        for metric, value in zip(scores, _quality(picture, result, network), strict=True):
            scores[metric].append(value)
    return _row(method, bed, names, scores, cost)


def _row(
    method: Method, bed: Bed, names: list[str], scores: Mapping[str, list[float]], cost: Mapping[str, Any]
) -> Cell:
    columns = [
        Column("LPIPS", scores["LPIPS"], compared="difference"),
        Column("PSNR, dB", scores["PSNR"]),
        Column("SSIM", scores["SSIM"]),
        Column("local variance kept", scores["variance"]),
        Column("time, s", cost["seconds"], summary="median", compared="ratio"),
        Column("memory beyond the picture, MB", [x / MB for x in cost["beyond"]], compared="ratio"),
        Column("memory of the process, MB", [x / MB for x in cost["peak"]], compared="ratio"),
    ]
    return row_of(
        bed.title, method.title, names, columns, cpu_seconds=cost["cpu_seconds"], refused=cost["refused"]
    )  # fmt: skip


def fill_in_fresh_process(method: str, pictures: list[MaskedPhotograph]) -> tuple[list[Pixels | None], dict[str, Any]]:
    """Fill pictures; what is in a hole is hidden from the method. If it ends the process, a new one fills the rest.

    Returns:
        The filled pictures, None for those that the method refused, and ``seconds`` and ``cpu_seconds`` of the others;
        ``peak`` and ``beyond``, the peak memory of the process and how much of it came with the pictures, in lists of
        one, empty if all were refused; ``refused``, what the process said last, by name of the picture.
    """
    with tempfile.TemporaryDirectory() as folder:
        files = [_write(picture, Path(folder, str(index))) for index, picture in enumerate(pictures)]
        found: list[dict[str, Any]] = []
        refused: dict[str, str] = {}
        while len(found) < len(files):
            lines, last_words = _run_worker(method, files[len(found) :])
            found += lines
            if len(found) < len(files):
                refused[pictures[len(found)].name] = last_words
                found.append({})
        filled = [np.asarray(Image.open(x["filled"])) if line else None for x, line in zip(files, found, strict=True)]
    measured = [line for line in found if line]
    cost: dict[str, Any] = {name: [line[name] for line in measured] for name in ("seconds", "cpu_seconds")}
    cost["peak"] = [max(line["peak"] for line in measured)] if measured else []
    cost["beyond"] = [max(line["peak"] - line["before"] for line in measured)] if measured else []
    return filled, cost | {"refused": refused}


def _run_worker(method: str, files: list[dict[str, str]]) -> tuple[list[dict[str, Any]], str]:
    """Fill pictures until the last one or the first that ends the process.

    Returns:
        What :func:`benchmarks.editing.fill_worker.fill_all` yielded, and the last line of the error output.
    """
    finished = subprocess.run(
        [sys.executable, "-m", "benchmarks.editing.fill_worker"],
        input=json.dumps({"method": method, "files": files}),
        env=_environment(METHODS[method].threads),
        capture_output=True,
        text=True,
    )
    last_words = (finished.stderr.strip().splitlines() or [f"exit code {finished.returncode}"])[-1]
    return [json.loads(line) for line in finished.stdout.splitlines()], last_words


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
