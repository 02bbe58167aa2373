"""How well and how fast photographs are edited, from one run: what the README's second table shows.

Run from the project's folder as ``python -m benchmarks.editing --data folder``.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from skimage.metrics import structural_similarity
from tqdm import tqdm

import psal
from benchmarks import report
from benchmarks.report import Target
from psal.experiments.markdown import update_readme
from psal.measure.fresh_process import measure_in_fresh_process
from psal.measure.timing import metadata

Pixels = NDArray[np.uint8]

SEED = 0
RUNS = 5
HOLES, HOLE = 3, 48  # in the photographs of places512_object
MEGAPIXELS_12 = (4000, 3000)
APART = 10  # frames
BORDER = 2  # pixels that super-resolution leaves out

NOTES = f"""\
- Eight holes: 100 × 100 pixels each, on a grid with random offsets, in the photographs of `highres`, cut and
  resized to 1,280 × 800. psal ran {RUNS} times after one that doesn't count, pypatchmatch once; psal on two
  threads, pypatchmatch on the one that it uses.
- Random holes: {HOLES} of {HOLE} × {HOLE} pixels in each of the ten first photographs of `places512_object`. PSNR is
  that of the pixels in the hole, SSIM the mean of its map there, local variance that of 7 × 7 windows there over the
  truth's.
- Object removal and 12 megapixels: each in a process of its own, from the files to the picture in memory; the peak is
  all of the process's resident memory, Python and torch included. For 12 megapixels, `hifill_1` resized to
  4,000 × 3,000 is made grey, and the reference is the same photograph shifted by 40 pixels and a third brighter.
- Enlarging: the high-resolution picture cut to even sides, halved by Pillow's BICUBIC, and enlarged again; PSNR of Y,
  border of {BORDER} cut, over that of Pillow's BICUBIC enlargement.
- Colouring: DAVIS, all sequences of the val split, frames {APART}, {2 * APART}, … made grey, each with the frame
  {APART} before it as reference, 854 × 480; mean square error of RGB in 0..1 over all pairs, of the grey pictures over
  the coloured ones."""


@dataclass
class Bench:
    """Where the pictures are, and what has been measured."""

    data: Path
    rows: list[dict[str, Any]] = field(default_factory=list)

    def add(self, target: Target, value: float, low: float | None = None, high: float | None = None) -> None:
        self.rows.append(report.row(target, value, value if low is None else low, value if high is None else high))

    def pictures(self, folder: str, pattern: str = "*") -> list[Path]:
        found = sorted((self.data / folder).glob(pattern))
        if not found:
            raise FileNotFoundError(f"no pictures in {self.data / folder}")
        return found


def load(path: Path) -> Pixels:
    return np.asarray(Image.open(path).convert("RGB"))


def pypatchmatch(image: Pixels, hole: NDArray[np.bool_], side: int) -> Pixels:
    from patchmatch import patch_match

    filled: Pixels = patch_match.inpaint(image.copy(), hole.astype(np.uint8) * 255, patch_size=side)
    return filled


def seconds_of(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def eight_holes(bench: Bench) -> None:
    """Speed against pypatchmatch."""
    ours: list[float] = []
    theirs: dict[int, list[float]] = {7: [], 15: []}
    for number, path in enumerate(tqdm(bench.pictures("highres/images"), desc="eight holes", disable=None)):
        image = cut_and_resize(path, 1280, 800)
        hole = np.zeros((800, 1280), bool)
        offset = np.random.default_rng(number)
        for top in (100, 450):
            for left in (60, 360, 660, 960):
                y, x = top + offset.integers(100), left + offset.integers(80)
                hole[y : y + 100, x : x + 100] = True
        runs = [seconds_of(partial(psal.inpaint, image, hole, seed=SEED)) for _ in range(RUNS + 1)][1:]
        ours.append(sorted(runs)[len(runs) // 2])
        for side, times in theirs.items():
            times.append(seconds_of(partial(pypatchmatch, image, hole, side)))
    for side, least, aim in ((15, 50, 150), (7, 10, 30)):
        ratios = [b / a for a, b in zip(ours, theirs[side], strict=True)]
        what = f"eight 100² holes in 1,280 × 800: times faster than pypatchmatch, patch {side}"
        bench.add(Target(what, least, aim, more_is_better=True), float(np.median(ratios)), min(ratios), max(ratios))
    bench.add(Target("the same: seconds"), float(np.median(ours)), min(ours), max(ours))


def random_holes(bench: Bench) -> None:
    """Quality against pypatchmatch."""
    methods: dict[str, Callable[[Pixels, NDArray[np.bool_]], Pixels]] = {
        "psal": lambda image, hole: psal.inpaint(image, hole, seed=SEED),
        "7": lambda image, hole: pypatchmatch(image, hole, 7),
        "15": lambda image, hole: pypatchmatch(image, hole, 15),
    }
    found: dict[str, list[tuple[float, float, float]]] = {name: [] for name in methods}
    paths = bench.pictures("scenes/places512_object/images")[:10]
    for number, path in enumerate(tqdm(paths, desc="random holes", disable=None)):
        image = load(path)
        height, width = image.shape[:2]
        hole = np.zeros((height, width), bool)
        place = np.random.default_rng(number)
        for _ in range(HOLES):
            y, x = place.integers(8, height - HOLE - 8), place.integers(8, width - HOLE - 8)
            hole[y : y + HOLE, x : x + HOLE] = True
        for name, fill in methods.items():
            found[name].append(hole_quality(fill(image, hole), image, hole))
    ours, seven, fifteen = (np.array(found[name]) for name in methods)
    for side, theirs in ((7, seven), (15, fifteen)):
        psnr, ssim, _ = (ours - theirs).T
        target = Target(f"random 48² holes: PSNR over pypatchmatch's, patch {side}, dB", -0.3, 0, more_is_better=True)
        bench.add(target, psnr.mean(), psnr.min(), psnr.max())
        target = Target(f"random 48² holes: SSIM over pypatchmatch's, patch {side}", 0, 0, more_is_better=True)
        bench.add(target, ssim.mean(), ssim.min(), ssim.max())
    variance = ours[:, 2]
    target = Target("random 48² holes: local variance over the truth's", 0.6, 0.75, more_is_better=True)
    bench.add(target, variance.mean(), variance.min(), variance.max())
    for name, values in (("7", seven[:, 2]), ("15", fifteen[:, 2])):
        bench.add(Target(f"the same of pypatchmatch, patch {name}"), values.mean(), values.min(), values.max())


def hole_quality(filled: Pixels, truth: Pixels, hole: NDArray[np.bool_]) -> tuple[float, float, float]:
    """PSNR, SSIM and share of the local variance in the hole."""
    a, b = filled / 255.0, truth / 255.0
    psnr = -10 * np.log10(np.square(a - b)[hole].mean())
    _, ssim = structural_similarity(a, b, channel_axis=2, data_range=1.0, full=True)
    variance = local_variance(a)[hole].mean() / local_variance(b)[hole].mean()
    return float(psnr), float(ssim[hole].mean()), float(variance)


def local_variance(image: NDArray[np.float64]) -> NDArray[np.float64]:
    x = torch.from_numpy(image).permute(2, 0, 1)[None]
    mean, square = (torch.nn.functional.avg_pool2d(v, 7, 1, 3) for v in (x, x.square()))
    result: NDArray[np.float64] = (square - mean.square()).clamp_min(0).mean(1)[0].numpy()
    return result


def object_removal(bench: Bench) -> None:
    """24 megapixels."""
    highres = bench.data / "highres"
    done = measure_in_fresh_process("inpaint", [highres / "images/hifill_1.jpg", highres / "masks/hifill_1.png"])
    bench.add(Target("object removal, 24 megapixels: seconds", 15, 5), done.seconds)
    bench.add(Target("object removal, 24 megapixels: peak memory, GB", 2, 1), done.peak / 1e9)


def colour_12_megapixels(bench: Bench) -> None:
    """Time and memory of colouring a large picture."""
    folder = Path("build/bench_editing")
    folder.mkdir(parents=True, exist_ok=True)
    image = Image.open(bench.data / "highres/images/hifill_1.jpg").convert("RGB").resize(MEGAPIXELS_12)
    brighter = np.roll(np.asarray(image), 40, axis=1).astype(np.float32) * 1.33
    image.convert("L").save(folder / "grey.png", compress_level=1)
    Image.fromarray(brighter.clip(0, 255).astype(np.uint8)).save(folder / "reference.png", compress_level=1)
    done = measure_in_fresh_process("colorize", [folder / "grey.png", folder / "reference.png"])
    bench.add(Target("colorize, 12 megapixels: seconds", 60, 20), done.seconds)
    bench.add(Target("colorize, 12 megapixels: peak memory, GB", 4, 2), done.peak / 1e9)


def enlarge(bench: Bench) -> None:
    """Super-resolution of Urban100."""
    gains, bicubics = [], []
    for path in tqdm(bench.pictures("Urban100/HR"), desc="Urban100", disable=None):
        truth = load(path)
        truth = truth[: truth.shape[0] // 2 * 2, : truth.shape[1] // 2 * 2]
        height, width = truth.shape[:2]
        small = Image.fromarray(truth).resize((width // 2, height // 2), Image.Resampling.BICUBIC)
        large = small.resize((width, height), Image.Resampling.BICUBIC)
        bicubics.append(psnr_of_y(np.asarray(large), truth))
        gains.append(psnr_of_y(psal.upscale(np.asarray(small), 2, seed=SEED), truth) - bicubics[-1])
    target = Target("upscale ×2, Urban100: PSNR over bicubic's, dB", 1.4, 2.3, more_is_better=True)
    bench.add(target, float(np.mean(gains)), min(gains), max(gains))
    bench.add(Target("the same: PSNR of bicubic, dB"), float(np.mean(bicubics)), min(bicubics), max(bicubics))


def psnr_of_y(image: Pixels, truth: Pixels) -> float:
    a, b = ((x / 255.0 @ [65.481, 128.553, 24.966] + 16)[BORDER:-BORDER, BORDER:-BORDER] for x in (image, truth))
    return float(10 * np.log10(255**2 / np.square(a - b).mean()))


def colour(bench: Bench) -> None:
    """Colour of a video frame from another."""
    davis = bench.data / "DAVIS"
    lines = (davis / "ImageSets/2016/val.txt").read_text().split()
    names = sorted({Path(line).parent.name for line in lines if line.endswith(".jpg")} or set(lines))
    before: list[float] = []
    after: dict[str, list[float]] = {"patches": [], "network": []}
    for name in tqdm([n for n in names if (davis / "JPEGImages/480p" / n).is_dir()], desc="DAVIS", disable=None):
        paths = bench.pictures(f"DAVIS/JPEGImages/480p/{name}")
        for first, second in zip(paths[::APART], paths[APART::APART], strict=False):
            reference, truth = load(first), load(second)
            grey = np.asarray(Image.fromarray(truth).convert("L"))
            before.append(mean_square_error(np.repeat(grey[..., None], 3, 2), truth))
            for model, errors in after.items():
                coloured = psal.colorize(grey, reference, model=model, seed=SEED)
                errors.append(mean_square_error(coloured, truth))
    targets = {
        "patches": Target("colorize, DAVIS: times below the grey picture's error", 3, 6, more_is_better=True),
        "network": Target('the same with `model="network"`'),
    }
    for model, target in targets.items():
        ratios = [b / a for a, b in zip(after[model], before, strict=True)]
        bench.add(target, float(np.mean(before) / np.mean(after[model])), min(ratios), max(ratios))


def mean_square_error(a: Pixels, b: Pixels) -> float:
    return float(np.square(a / 255.0 - b / 255.0).mean())


def cut_and_resize(path: Path, width: int, height: int) -> Pixels:
    """The largest part of that shape in the middle, resized."""
    image = Image.open(path).convert("RGB")
    scale = min(image.width / width, image.height / height)
    w, h = width * scale, height * scale
    left, top = (image.width - w) / 2, (image.height - h) / 2
    box = (left, top, left + w, top + h)
    return np.asarray(image.resize((width, height), Image.Resampling.BICUBIC, box=box))


ROWS = {
    "eight": eight_holes,
    "random": random_holes,
    "object": object_removal,
    "colour12": colour_12_megapixels,
    "enlarge": enlarge,
    "colour": colour,
}


def main() -> None:
    """Measure, print the table, and write it and the README; with --rows the other rows stay as they were."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.editing", description=main.__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with highres, scenes, Urban100 and DAVIS")
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS), help="measure only these")
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    only = "" if arguments.rows == list(ROWS) else f" --rows {' '.join(arguments.rows)}"
    about = metadata("editing") | {"command": f"python -m benchmarks.editing --data {arguments.data}{only}"}
    path = Path("results/editing.json")
    groups: dict[str, Any] = json.loads(path.read_text())["groups"] if path.exists() else {}
    try:
        for name in arguments.rows:
            print(f"measuring: {name}", file=sys.stderr, flush=True)
            bench = Bench(arguments.data)
            ROWS[name](bench)
            groups[name] = {"rows": bench.rows, "metadata": about}
    except FileNotFoundError as error:
        sys.exit(f"error: {error}")
    rows = [row for name in ROWS if name in groups for row in groups[name]["rows"]]
    record = {"rows": rows, "groups": groups, "notes": NOTES}
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")
    text = report.editing_markdown(record)
    path.with_suffix(".md").write_text(text)
    update_readme(Path("README.md"), "editing", text)
    print(report.table(rows))
    print(f"\nwritten to {path} and {path.with_suffix('.md')}", file=sys.stderr)


if __name__ == "__main__":
    main()
