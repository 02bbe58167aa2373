"""Quality of the default search where it is hard: small patches, little contrast, noise, repeated patterns.

Run from the project's folder as ``python -m benchmarks.hard_cases --data folder``.
"""

import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import psal
from benchmarks import frames
from benchmarks.frames import Pair, load_pair
from benchmarks.runner import Benchmark
from psal import ops
from psal.data.image_folder import MissingDataError
from psal.experiments.feature_maps import features
from psal.matches import MatchQuality
from psal.measure.quantities import Quantities
from psal.measure.record import Cell
from psal.measure.terminal import track
from psal.options import SearchOptions

PAIRS = 3
SIZE, QUICK_SIZE = 96, 24
LARGE_SIZE, QUICK_LARGE_SIZE = 256, 40
HARD_SEQUENCE = "motocross-jump"  # frames 10 apart have little in common
CHECKERBOARDS = (7, 8), (8, 7), (9, 8), (8, 10)  # sides of the fields: a patch sees one edge per axis
EXACT_STRIDE = 5  # large maps: every fifth query along each axis; odd, as the tree is searched at even pixels


@dataclass(frozen=True)
class HardCase:
    """A search whose quality is measured.

    Attributes:
        name: of the row.
        query, key: maps.
        options: of the search, where they are not the default.
        perfect: whether all queries have a key of the same values. There is no ratio of costs then; the share of the
            queries whose best match is found is measured in its place.
    """

    name: str
    query: Tensor
    key: Tensor
    options: dict[str, Any] = field(default_factory=dict)
    perfect: bool = False


def photograph_cases(data: Path, sequence: str, size: int) -> list[HardCase]:
    """Cases made of two frames of a sequence."""
    pair = load_pair(data, sequence, size)
    large = load_pair(data, sequence, 5 * size)
    image, reference = pair.image, pair.reference
    shift = 60 * size // 96
    view = load_pair(data, sequence, size + shift).image
    top, left, crop = 2 * size, 3 * size // 2, size // 3
    part = large.image[..., top : top + crop, left : left + crop]
    noisy, noisy_reference = (
        torch.cat([x[:, :2], 1000 * torch.rand(1, 1, size, size, generator=generator(i))], 1)
        for i, x in enumerate((image, reference))
    )
    return [
        HardCase("patch 1, RGB, k = 1", image, reference, {"patch_size": 1, "neighbors": 1}),
        HardCase("patch 1, RGB, k = 3", image, reference, {"patch_size": 1}),
        *(HardCase(f"patch 1, {channels} channels", *wide(pair, channels), {"patch_size": 1}) for channels in (16, 64)),
        HardCase("patch 1, 64 channels, dot", *wide(pair, 64), {"patch_size": 1, "similarity": "dot"}),
        HardCase("patch 3, RGB", image, reference, {"patch_size": 3}),
        HardCase("patch 3, gray", image.mean(1, True), reference.mean(1, True), {"patch_size": 3}),
        HardCase("photo · 1e-3 + 1000, float32", 1e-3 * image + 1000, 1e-3 * reference + 1000),
        HardCase("photo · 1e-4 + 1000, float64", 1e-4 * image.double() + 1000, 1e-4 * reference.double() + 1000),
        HardCase("photo + 1e6, float64", image.double() + 1e6, reference.double() + 1e6),
        HardCase("one noise channel × 1000", noisy, noisy_reference),
        HardCase(f"translation by {shift} pixels", view[..., :size, :size], view[..., :size, shift:]),
        HardCase(f"query {crop}², a crop; key {5 * size}²", part, large.reference),
    ]


def synthetic_cases(size: int) -> list[HardCase]:
    """Cases made of patterns and noise."""
    rows, columns = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")

    def checkerboard(side: int, offset: int) -> Tensor:
        board = ((rows + offset) // side + (columns + offset) // side) % 2
        return board.float().expand(1, 3, -1, -1).contiguous()

    def noise(seed: int, scale: float = 1.0) -> Tensor:
        return scale * torch.randn(1, 3, size, size, generator=generator(seed))

    halves = (columns >= size // 2).float().expand(1, 3, -1, -1)
    return [
        *(
            HardCase("checkerboards", checkerboard(query, 0), checkerboard(key, offset), perfect=True)
            for query, key in CHECKERBOARDS
            for offset in range(4)
        ),
        HardCase("two constant halves with noise of 1e-3", halves + noise(0, 1e-3), halves + noise(1, 1e-3)),
        HardCase("white noise", noise(2), noise(3)),
        HardCase("white noise, dot", noise(4), noise(5), {"similarity": "dot"}),
    ]


def motion_case(data: Path, sequence: str, size: int) -> HardCase:
    """Two frames of a sequence with fast motion."""
    pair = load_pair(data, sequence, size)
    return HardCase(f"{sequence}, 16 channels, {size}²", pair.query, pair.key)


def wide(pair: Pair, channels: int) -> tuple[Tensor, Tensor]:
    """Feature maps of a pair with many channels."""
    return features(pair.image, channels), features(pair.reference, channels)


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def quality(case: HardCase) -> MatchQuality:
    """Quality of the best matches, with costs in float64."""
    exact_options: dict[str, Any] = {
        name: case.options[name] for name in ("patch_size", "similarity") if name in case.options
    }
    query, key = case.query.double(), case.key.double()
    mask = None
    if query[0, 0].numel() > 2**15:
        mask = torch.zeros_like(query[:, :1], dtype=torch.bool)
        mask[..., ::EXACT_STRIDE, ::EXACT_STRIDE] = True
    exact = psal.exact_match(query, key, neighbors=1, query_mask=mask, **exact_options)
    found = psal.patch_match(case.query, case.key, seed=0, **case.options)
    index = found.index[:, :1].where(exact.index >= 0, -1)
    score = ops.score(query, key, index, SearchOptions(neighbors=1, **exact_options))
    return psal.match_quality(psal.Matches(index, score), exact, **_similarity(exact_options))


def _similarity(options: dict[str, Any]) -> dict[str, Any]:
    return {"similarity": options["similarity"]} if "similarity" in options else {}


def measure(cases: Iterable[HardCase]) -> Cell:
    """Cost of the default search over that of exhaustive search, or the share of best matches found."""
    rows: dict[str, list[float]] = {}
    for case in track(list(cases), "hard cases"):
        if case.perfect:
            rows.setdefault(f"{case.name}: share of the best matches found", []).append(quality(case).best_found)
        else:
            rows.setdefault(case.name, []).append(quality(case).cost_ratio)
    found = Quantities()
    for name, values in rows.items():
        found.add(name, values, against="exact search")
    return found.cell()


BENCHMARK = Benchmark(
    "hard_cases",
    "Measure the quality of the default search where it is hard.",
    ["photographs", "motion", "patterns"],
    packages=("torch", "numpy", "pillow"),
    data=f"folder with {frames.LAYOUT}",
)


def main() -> None:
    """Measure, print the table and write results/hard_cases.json."""
    arguments = BENCHMARK.parser().parse_args()
    size, large = (QUICK_SIZE, QUICK_LARGE_SIZE) if arguments.quick else (SIZE, LARGE_SIZE)
    try:
        names = frames.sequences(arguments.data)
        hard = HARD_SEQUENCE if HARD_SEQUENCE in names else names[-1]
        photographs = [case for name in names[:PAIRS] for case in photograph_cases(arguments.data, name, size)]
        motion = motion_case(arguments.data, hard, large)
    except MissingDataError as error:
        sys.exit(f"error: {error}")
    groups = {
        "photographs": partial(measure, photographs),
        "motion": partial(measure, [motion]),
        "patterns": partial(measure, synthetic_cases(size)),
    }
    BENCHMARK.measure(arguments, {"size": size, "large_size": large, "sequences": names[:PAIRS]}, groups)


if __name__ == "__main__":
    main()
