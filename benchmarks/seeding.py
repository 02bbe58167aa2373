"""Quality of the starts of a search on pairs of video frames: ``python -m benchmarks.seeding --data folder``

"Morton curves" is ``init="tree"`` of the Triton and the reference backend. The reference's search computes it, with
scores of the native kernels, which agree and take a thirtieth of the time.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import torch

import psal
from benchmarks import frames
from benchmarks.frames import Pair, load_pair
from psal.data.image_folder import MissingDataError
from psal.errors import UsageError
from psal.experiments.search_quality import cost_ratios
from psal.experiments.seeding_tables import tables
from psal.measure.machine import PACKAGES, metadata
from psal.measure.record import Cell, Record
from psal.measure.terminal import show, track
from psal.ops import native, reference

Search = Callable[[Pair], psal.Matches]

COMMAND = "python -m benchmarks.seeding"
SIZE, QUICK_SIZE = 256, 32
EXACT_STRIDE = 5  # every fifth query along each axis is compared with exhaustive search; odd, as in hard_cases


@contextmanager
def scores_by_kernels() -> Iterator[None]:
    """Inside a ``with`` block, the reference's search computes its scores by the native kernels."""
    before = reference.score
    reference.score = native.score
    try:
        yield
    finally:
        reference.score = before


def by_morton_curves(pair: Pair) -> psal.Matches:
    with scores_by_kernels():
        return psal.patch_match(pair.query, pair.key, init="tree", seed=0, backend="reference")


SEARCHES: dict[str, Search] = {
    "Morton curves": by_morton_curves,
    "tree of the CPU kernels": lambda pair: psal.patch_match(pair.query, pair.key, init="tree", seed=0),
    "paper, 5 iterations": lambda pair: psal.patch_match(pair.query, pair.key, init="random", seed=0),
    "paper, 10 iterations": lambda pair: psal.patch_match(pair.query, pair.key, init="random", iterations=10, seed=0),
}


def measure(data: Path, sequence: str, size: int) -> Cell:
    """Mean cost of each search's best matches over that of the exact ones, on a pair of frames of a sequence."""
    pair = load_pair(data, sequence, size)
    searches = {name: partial(search, pair) for name, search in SEARCHES.items()}
    return {"costs": cost_ratios(pair.query, pair.key, searches, EXACT_STRIDE)}


def main() -> None:
    """Measure every sequence that results/seeding.json lacks, and print the table."""
    parser = argparse.ArgumentParser(prog=COMMAND, description="Measure how close searches come to the exact matches.")
    parser.add_argument("--data", type=Path, required=True, help=f"folder with {frames.LAYOUT}".replace("%", "%%"))
    parser.add_argument("--out", type=Path, help="folder of the JSON file [results; build with --quick]")
    parser.add_argument("--overwrite", action="store_true", help="measure everything again")
    parser.add_argument("--quick", action="store_true", help="smoke test with tiny inputs; its numbers mean nothing")
    parser.add_argument("--threads", type=int, default=2, help="number of CPU threads [2]")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    size = QUICK_SIZE if arguments.quick else SIZE
    folder = arguments.out or Path("build" if arguments.quick else "results")
    try:
        names = frames.sequences(arguments.data)
        about = metadata(f"{COMMAND} --data folder", PACKAGES)
        record = Record.resume(folder / "seeding.json", {"size": size, "sequences": names}, about, arguments.overwrite)
        for name in track(names, "sequences"):
            record.measure_once(name, partial(measure, arguments.data, name, size))
    except (MissingDataError, UsageError, OSError) as error:
        sys.exit(f"error: {error}")
    show(record, tables(record))
    print(f"written to {record.path}", file=sys.stderr)


if __name__ == "__main__":
    main()
