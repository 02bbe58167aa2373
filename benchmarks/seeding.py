"""Quality of the starts of a search on pairs of video frames: ``python -m benchmarks.seeding --data folder``

"Morton curves" is ``init="tree"`` of the Triton and the reference backend. The reference's search computes it, with
scores of the native kernels, which agree and take a thirtieth of the time.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path

import torch
from torch import Tensor

import psal
from benchmarks import frames
from benchmarks.frames import Pair, load_pair
from benchmarks.runner import Benchmark
from psal.data.image_folder import MissingDataError
from psal.measure.quantities import Quantities
from psal.measure.record import Cell
from psal.measure.terminal import track
from psal.ops import native, reference

Search = Callable[[Pair], psal.Matches]

SIZE, QUICK_SIZE = 256, 32
EXACT_STRIDE = 4  # every fourth query along each axis is compared with exhaustive search


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


class Frames:
    """Pairs of frames of all sequences, and their exact matches, computed once."""

    def __init__(self, data: Path, size: int) -> None:
        self.names = frames.sequences(data)
        self._load = cache(partial(self._read, data, size))

    @staticmethod
    def _read(data: Path, size: int, sequence: str) -> tuple[Pair, Tensor, psal.Matches]:
        pair = load_pair(data, sequence, size)
        mask = torch.zeros_like(pair.query[:, :1], dtype=torch.bool)
        mask[..., ::EXACT_STRIDE, ::EXACT_STRIDE] = True
        return pair, mask, psal.exact_match(pair.query, pair.key, neighbors=1, query_mask=mask)

    def cost_ratio(self, sequence: str, search: Search) -> float:
        """Mean cost of a search's best matches over that of the exact ones."""
        pair, mask, exact = self._load(sequence)
        index, score = search(pair)
        found = psal.Matches(index[:, :1].where(mask, -1), score[:, :1].where(mask, -torch.inf))
        return psal.match_quality(found, exact).cost_ratio


def measure(pairs: Frames, name: str) -> Cell:
    """Measure a search on all sequences."""
    costs = {sequence: pairs.cost_ratio(sequence, SEARCHES[name]) for sequence in track(pairs.names, name)}
    quantities = Quantities()
    quantities.add(name, list(costs.values()), against="exact search")
    return quantities.cell(sequences=costs)


BENCHMARK = Benchmark(
    "seeding",
    "Measure how close searches come to the exact matches, by what they start from.",
    list(SEARCHES),
    packages=("torch", "numpy", "pillow"),
    data=f"folder with {frames.LAYOUT}",
)


def main() -> None:
    """Measure, print the table and write results/seeding.json."""
    arguments = BENCHMARK.parser().parse_args()
    size = QUICK_SIZE if arguments.quick else SIZE
    try:
        pairs = Frames(arguments.data, size)
    except MissingDataError as error:
        sys.exit(f"error: {error}")
    groups = {name: partial(measure, pairs, name) for name in SEARCHES}
    BENCHMARK.measure(arguments, {"size": size, "sequences": pairs.names}, groups)


if __name__ == "__main__":
    main()
