"""Rebuild one view of a stereo pair from the other: ``python -m psal.demo --out demo``."""

import argparse
import math
import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

import psal

if TYPE_CHECKING:
    from PIL import Image

CHECKED = 2000  # queries compared with exact search, a few seconds
RUNS = 3
MARGIN, LABEL_HEIGHT = 8, 44
ERROR_GAIN = 5


class Rebuilt(NamedTuple):
    """One layer's picture ``(1, 3, H, W)`` and how it came about."""

    name: str
    picture: Tensor
    loss: float
    seconds: float
    quality: psal.MatchQuality


def rebuild(
    name: str, target: Tensor, reference: Tensor, exact: psal.Matches, *, neighbors: int, aggregate: bool, seed: int
) -> Rebuilt:
    """Attend from the target's patches to the reference's, with the reference's pixels as values.

    Args:
        name: what to call it.
        target: ``(1, 3, H, W)``.
        reference: ``(1, 3, H, W)``.
        exact: true matches of some of the target's pixels, the others −1.
        neighbors, aggregate, seed: as in :func:`psal.patch_attention`.

    Returns:
        The picture, its loss, the median time, and the quality of its matches.
    """
    seconds = []
    for _ in range(RUNS):
        start = time.perf_counter()
        result = psal.patch_attention(
            target, reference, reference, neighbors=neighbors, aggregate=aggregate,
            seed=seed, return_matches=True,
        )  # fmt: skip
        seconds.append(time.perf_counter() - start)
    assert isinstance(result, tuple)
    picture, matches = result
    checked = exact.index[:, :1] >= 0
    matches = psal.Matches(matches.index.where(checked, -1), matches.score.where(checked, -math.inf))
    loss = (picture - target).square().mean().item()
    return Rebuilt(name, picture, loss, statistics.median(seconds), psal.match_quality(matches, exact))


def load_views() -> tuple[Tensor, Tensor]:
    """Left and right view of scikit-image's motorcycle, each ``(1, 3, H, W)`` in 0..1."""
    import numpy as np
    from skimage import data

    views = [torch.from_numpy(np.ascontiguousarray(view)) for view in data.stereo_motorcycle()[:2]]
    left, right = (view.permute(2, 0, 1)[None].float().div(255).contiguous() for view in views)
    return left, right


def to_image(picture: Tensor) -> "Image.Image":
    """A picture ``(1, 3, H, W)`` in 0..1 as Pillow has it."""
    from PIL import Image

    pixels = picture[0].clamp(0, 1).mul(255).round().byte().permute(1, 2, 0)
    return Image.fromarray(pixels.numpy())


def side_by_side(columns: list[list[tuple[str, Tensor]]]) -> "Image.Image":
    """Labelled pictures of one size, column by column."""
    from PIL import Image, ImageDraw, ImageFont

    height, width = columns[0][0][1].shape[2:]
    cell_width, cell_height = width + MARGIN, height + MARGIN + LABEL_HEIGHT
    size = (len(columns) * cell_width + MARGIN, max(map(len, columns)) * cell_height + MARGIN)
    sheet = Image.new("RGB", size, "white")
    draw = ImageDraw.Draw(sheet)
    font = ImageFont.load_default(size=28)
    for i, column in enumerate(columns):
        for j, (label, picture) in enumerate(column):
            left, top = MARGIN + i * cell_width, MARGIN + j * cell_height
            draw.text((left, top), label, fill="black", font=font)
            sheet.paste(to_image(picture), (left, top + LABEL_HEIGHT))
    return sheet


def main() -> None:
    """Rebuild the left view of a stereo pair from the right one: loss, time, match quality, and pictures."""
    parser = argparse.ArgumentParser(prog="python -m psal.demo", description=main.__doc__)
    parser.add_argument("--out", type=Path, default=Path("demo"), help="folder for the pictures [demo]")
    parser.add_argument("--seed", type=int, default=0, help="of the search [0]")
    arguments = parser.parse_args()
    try:
        target, reference = load_views()
        arguments.out.mkdir(parents=True, exist_ok=True)
    except ImportError as error:
        sys.exit(f"error: {error.name} is missing, which the demo needs: pip install 'psal[demo]'")
    except OSError as error:
        sys.exit(f"error: cannot write to {arguments.out}: {error.strerror}")
    height, width = target.shape[2:]
    print(f"{width} × {height} pixels, RGB, patches of 7 × 7, {torch.get_num_threads()} threads")

    print(f"exact search for {CHECKED:,} of the pixels, to compare with: some seconds ...", flush=True)
    chosen = torch.zeros(height * width, dtype=torch.bool)
    chosen[torch.randperm(height * width, generator=torch.Generator().manual_seed(arguments.seed))[:CHECKED]] = True
    start = time.perf_counter()
    exact = psal.exact_match(target, reference, neighbors=1, query_mask=chosen.reshape(1, 1, height, width))
    whole = (time.perf_counter() - start) * height * width / CHECKED
    print(f"for all {height * width:,} it would take about {whole:,.0f} s")

    print(f"\n{'':17}  {'loss (MSE)':>10}  {'PSNR':>8}  {'time':>8}  {'cost / exact':>12}  {'best found':>10}")
    rebuilt = []
    for name, neighbors, aggregate in (("PSAL 1", 1, False), ("PSAL 3", 3, False), ("PSAL 3 aggregated", 3, True)):
        done = rebuild(name, target, reference, exact, neighbors=neighbors, aggregate=aggregate, seed=arguments.seed)
        rebuilt.append(done)
        print(
            f"{name:17}  {done.loss:10.6f}  {-10 * math.log10(done.loss):5.1f} dB  {done.seconds:6.2f} s"
            f"  {done.quality.cost_ratio:12.3f}  {done.quality.best_found:10.1%}"
        )

    columns = [[("target: left view", target), ("reference: right view", reference)]]
    columns += [
        [
            (done.name, done.picture),
            (f"{done.name}: error, {ERROR_GAIN} times", (done.picture - target).abs() * ERROR_GAIN),
        ]
        for done in rebuilt
    ]
    side_by_side(columns).save(arguments.out / "comparison.png")
    for name, picture in [("target", target), ("reference", reference)] + [(d.name, d.picture) for d in rebuilt]:
        to_image(picture).save(arguments.out / f"{name.lower().replace(' ', '_')}.png")
    print(f"\nbefore and after side by side: {arguments.out / 'comparison.png'}")


if __name__ == "__main__":
    main()
