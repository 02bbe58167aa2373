"""Quality and speed of the edits on photographs.

Run from the project's folder as ``python -m benchmarks.editing --data folder``.
"""

import statistics
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import psal
from benchmarks.edit_cost import edit_cost
from benchmarks.photographs import Photographs, crop_and_resize, grid_of_holes, random_holes
from benchmarks.quality import Mask, Pixels, hole_quality, mean_square_error, psnr_of_luma
from benchmarks.runner import Benchmark
from psal.measure.process import run_in_fresh_process
from psal.measure.quantities import Quantities
from psal.measure.record import Cell
from psal.measure.terminal import track
from psal.measure.timing import seconds_of

SEED = 0
RUNS = 5
HOLE_COUNT, HOLE_SIDE = 3, 48
RANDOM_HOLE_PHOTOGRAPHS = 10
MEGAPIXELS_12 = (4000, 3000)
PATCH_SIZES = (15, 7)  # pypatchmatch's patch_size, which is a radius


def pypatchmatch(image: Pixels, hole: Mask, patch_size: int) -> Pixels:
    from patchmatch import patch_match

    filled: Pixels = patch_match.inpaint(image.copy(), hole.astype(np.uint8) * 255, patch_size=patch_size)
    return filled


def named(patch_size: int) -> str:
    return f"pypatchmatch, `patch_size={patch_size}`"


def inpaint_speed(photographs: Photographs) -> Cell:
    """Eight holes: time against pypatchmatch."""
    width, height = (160, 100) if photographs.max_side else (1280, 800)
    ours: list[float] = []
    theirs: dict[int, list[float]] = {size: [] for size in PATCH_SIZES}
    for index, path in enumerate(track(photographs.files("highres/images"), "eight holes")):
        image, hole = crop_and_resize(path, width, height), grid_of_holes(width, height, seed=index)
        runs = [
            seconds_of(partial(psal.inpaint, image, hole, seed=SEED))
            for _ in range(1 + (1 if photographs.max_side else RUNS))
        ]
        ours.append(statistics.median(runs[1:]))
        for size, times in theirs.items():
            times.append(seconds_of(partial(pypatchmatch, image, hole, size)))
    found = Quantities(f"inpaint, eight holes of {height // 8}² in {width:,} × {height}")
    for size in PATCH_SIZES:
        speedups = [b / a for a, b in zip(ours, theirs[size], strict=True)]
        found.add("speedup", speedups, against=named(size), unit="×", value=statistics.median(speedups))
    found.add("time", ours, unit="s", value=statistics.median(ours))
    return found.cell()


def inpaint_quality(photographs: Photographs) -> Cell:
    """Random holes: quality against pypatchmatch."""
    methods: dict[str, Callable[[Pixels, Mask], Pixels]] = {
        "psal": lambda image, hole: psal.inpaint(image, hole, seed=SEED),
        "7": lambda image, hole: pypatchmatch(image, hole, 7),
        "15": lambda image, hole: pypatchmatch(image, hole, 15),
    }
    qualities: dict[str, list[tuple[float, float, float]]] = {name: [] for name in methods}
    files = photographs.files("scenes/places512_object/images")[:RANDOM_HOLE_PHOTOGRAPHS]
    for index, path in enumerate(track(files, "random holes")):
        image = photographs.load(path)
        height, width = image.shape[:2]
        hole = random_holes(width, height, HOLE_SIDE, HOLE_COUNT, seed=index)
        for name, fill in methods.items():
            qualities[name].append(hole_quality(fill(image, hole), image, hole))
    ours, seven, fifteen = (np.array(qualities[name]) for name in methods)
    found = Quantities(f"inpaint, three random holes of {HOLE_SIDE}²")
    for size, theirs in ((7, seven), (15, fifteen)):
        psnr, ssim, _ = (ours - theirs).T.tolist()
        found.add("PSNR, difference", psnr, against=named(size), unit="dB")
        found.add("SSIM, difference", ssim, against=named(size))
    found.add("local variance, ratio", ours[:, 2].tolist(), against="original")
    for size, theirs in ((7, seven), (15, fifteen)):
        found.add(f"local variance of {named(size)}, ratio", theirs[:, 2].tolist(), against="original")
    return found.cell()


def object_removal(photographs: Photographs) -> Cell:
    """Time and memory of filling a hole in 24 megapixels."""
    with tempfile.TemporaryDirectory() as folder:
        paths = ("highres/images/hifill_1.jpg", "highres/masks/hifill_1.png")
        files = [photographs.file(path, Path(folder)) for path in paths]
        return _cost_cell("inpaint, object removal, 24 megapixels", "inpaint", files)


def colorize_12_megapixels(photographs: Photographs) -> Cell:
    """Time and memory of colorizing 12 megapixels from a shifted, brighter copy."""
    with Image.open(photographs.data / "highres/images/hifill_1.jpg") as file:
        image = file.convert("RGB").resize((400, 300) if photographs.max_side else MEGAPIXELS_12)
    brighter = np.roll(np.asarray(image), 40, axis=1).astype(np.float32) * 1.33
    with tempfile.TemporaryDirectory() as folder:
        gray, reference = Path(folder, "gray.png"), Path(folder, "reference.png")
        image.convert("L").save(gray, compress_level=1)
        Image.fromarray(brighter.clip(0, 255).astype(np.uint8)).save(reference, compress_level=1)
        return _cost_cell("colorize, 12 megapixels", "colorize", [str(gray), str(reference)])


def _cost_cell(label: str, function: str, files: list[str]) -> Cell:
    cost = run_in_fresh_process(edit_cost, function, files, label=label)
    found = Quantities(label)
    found.add("time", [cost["seconds"]], unit="s")
    found.add("peak memory", [cost["peak"] / 1e9], unit="GB")
    return found.cell()


def upscale(photographs: Photographs) -> Cell:
    """Super-resolution of Urban100 against bicubic interpolation."""
    gains, bicubics = [], []
    for path in track(photographs.files("Urban100/HR"), "Urban100"):
        original = photographs.load(path)
        height, width = (side // 2 * 2 for side in original.shape[:2])
        original = original[:height, :width]
        small = Image.fromarray(original).resize((width // 2, height // 2), Image.Resampling.BICUBIC)
        bicubics.append(psnr_of_luma(np.asarray(small.resize((width, height), Image.Resampling.BICUBIC)), original))
        gains.append(psnr_of_luma(psal.upscale(np.asarray(small), 2, seed=SEED), original) - bicubics[-1])
    found = Quantities("upscale ×2, Urban100")
    found.add("PSNR, difference", gains, against="bicubic", unit="dB")
    found.add("PSNR of bicubic", bicubics, unit="dB")
    return found.cell()


def colorize_video(photographs: Photographs) -> Cell:
    """Frames colorized from an earlier frame, against the gray frame."""
    gray_errors: list[float] = []
    errors: dict[str, list[float]] = {"patches": [], "network": []}
    for original, reference in track(list(photographs.video_pairs()), "DAVIS"):
        gray = np.asarray(Image.fromarray(original).convert("L"))
        gray_errors.append(mean_square_error(np.repeat(gray[..., None], 3, 2), original))
        for model in errors:
            colorized = psal.colorize(gray, reference, model=model, seed=SEED)
            errors[model].append(mean_square_error(colorized, original))
    found = Quantities("colorize, DAVIS")
    for model, own in errors.items():
        # The error of all pairs together, not the mean of ratios, which a single easy pair would dominate.
        overall = statistics.fmean(gray_errors) / statistics.fmean(own)
        ratios = [b / a for a, b in zip(own, gray_errors, strict=True)]
        quantity = f'`model="{model}"`: error reduction'
        found.add(quantity, ratios, against="gray frame", unit="×", value=overall)
    return found.cell()


GROUPS: dict[str, Callable[[Photographs], Cell]] = {
    "inpaint_speed": inpaint_speed,
    "inpaint_quality": inpaint_quality,
    "object_removal": object_removal,
    "colorize_12_megapixels": colorize_12_megapixels,
    "upscale": upscale,
    "colorize_video": colorize_video,
}
BENCHMARK = Benchmark(
    "editing",
    "Measure quality and speed of the edits.",
    list(GROUPS),
    packages=("torch", "numpy", "pypatchmatch", "scikit-image", "pillow"),
    data="folder with highres, scenes, Urban100 and DAVIS in it",
)


def main() -> None:
    """Measure, print the table and write results/editing.json."""
    arguments = BENCHMARK.parser().parse_args()
    photographs = Photographs(arguments.data, *((1, 128) if arguments.quick else ()))
    settings: dict[str, Any] = {"threads": arguments.threads, "runs": RUNS, "seed": SEED}
    BENCHMARK.measure(arguments, settings, {name: partial(group, photographs) for name, group in GROUPS.items()})


if __name__ == "__main__":
    main()
