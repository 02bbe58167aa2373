"""All four kinds of editing on the bundled samples: ``python -m psal.cli.demo --out demo``."""

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

import psal

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from PIL import Image

    from psal.data.samples import Sample

SCALE = 2
CELL, MARGIN, LABEL_HEIGHT = 400, 10, 26


class Done(NamedTuple):
    """One edit: labelled pictures, the time it took, and what can be said about it in numbers."""

    name: str
    pictures: "list[tuple[str, NDArray[Any]]]"
    seconds: float
    remark: str


def run(sample: "Sample", truth: "NDArray[Any]", seed: int) -> Done:
    """Edit one sample.

    Args:
        sample: from :func:`psal.data.samples.samples`.
        truth: the picture that "colorize" should find.
        seed: of the search.
    """
    picture, start = sample.picture, time.perf_counter()
    if sample.mask is not None:
        result = psal.inpaint(picture, sample.mask, seed=seed)
        seconds = time.perf_counter() - start
        hole = sample.mask > 127
        before = picture.copy()
        before[hole] = 255
        remark = f"{int(hole.sum()):,} pixels filled, the others unchanged: {bool((result == picture)[~hole].all())}"
        return Done("inpaint", [("photograph", picture), ("hole", before), ("filled", result)], seconds, remark)
    if sample.reference is not None and sample.name == "colorize":
        result = psal.colorize(picture, sample.reference, seed=seed)
        seconds = time.perf_counter() - start
        gain = _error(picture[..., None], truth) / _error(result, truth)
        remark = f"square error {gain:.1f} times below the grey picture's"
        pictures = [("grey photograph", picture), ("reference", sample.reference), ("coloured", result)]
        return Done("colorize", pictures, seconds, remark)
    if sample.reference is not None:
        result, shifts = psal.reconstruct(picture, sample.reference, seed=seed, return_shifts=True)
        seconds = time.perf_counter() - start
        remark = f"mean square error {_error(result, picture):.5f}"
        pictures = [("left view", picture), ("rebuilt from the right view", result), ("shifts", shifts)]
        return Done("reconstruct", pictures, seconds, remark)
    result = psal.upscale(picture, SCALE, seed=seed)
    seconds = time.perf_counter() - start
    size = result.shape[1::-1]
    bicubic = _resized(picture, size)
    again = _resized(result, picture.shape[1::-1])
    remark = f"square error after halving it again {_error(again, picture):.6f}, of bicubic "
    remark += f"{_error(_resized(bicubic, picture.shape[1::-1]), picture):.6f}"
    nearest = picture.repeat(SCALE, 0).repeat(SCALE, 1)
    pictures = [("photograph, part", nearest), ("bicubic, twice", bicubic), ("enlarged, twice", result)]
    return Done("upscale", [(label, _middle(x)) for label, x in pictures], seconds, remark)


def contact_sheet(edits: list[Done]) -> "Image.Image":
    """All pictures with their labels, an edit a row."""
    from PIL import Image, ImageDraw, ImageFont

    font = ImageFont.load_default(size=18)
    rows = []
    for edit in edits:
        cells: list[tuple[str, Image.Image]] = []
        for label, pixels in edit.pictures:
            image = Image.fromarray(pixels).convert("RGB")
            if max(image.size) <= CELL // 2:  # pixels to look at
                image = image.resize((2 * image.width, 2 * image.height), Image.Resampling.NEAREST)
            image.thumbnail((CELL, CELL), Image.Resampling.LANCZOS)
            cells.append((f"{edit.name}: {label}" if not cells else label, image))
        rows.append(cells)
    heights = [max(image.height for _, image in row) + LABEL_HEIGHT + MARGIN for row in rows]
    sheet = Image.new("RGB", (max(map(len, rows)) * (CELL + MARGIN) + MARGIN, sum(heights) + MARGIN), "white")
    draw = ImageDraw.Draw(sheet)
    top = MARGIN
    for row, height in zip(rows, heights, strict=True):
        for column, (label, image) in enumerate(row):
            left = MARGIN + column * (CELL + MARGIN)
            draw.text((left, top), label, fill="black", font=font)
            sheet.paste(image, (left, top + LABEL_HEIGHT))
        top += height
    return sheet


def main() -> None:
    """Fill, colour, rebuild and enlarge the bundled sample pictures; writes them and one contact sheet."""
    parser = argparse.ArgumentParser(prog="python -m psal.cli.demo", description=main.__doc__)
    parser.add_argument("--out", type=Path, default=Path("demo"), help="folder for the pictures [demo]")
    parser.add_argument("--seed", type=int, default=0, help="of the search [0]")
    arguments = parser.parse_args()
    try:
        from PIL import Image

        from psal.data.samples import samples

        found = samples()
    except ImportError as error:
        sys.exit(f"error: {error.name} is missing, which the demo needs: pip install 'psal[edit]'")
    try:
        arguments.out.mkdir(parents=True, exist_ok=True)
        truth = next(sample.picture for sample in found if sample.name == "reconstruct")
        edits = []
        print(f"{torch.get_num_threads()} threads\n{'edit':12} {'size':>10} {'seconds':>8}  result", flush=True)
        for sample in found:
            done = run(sample, truth, arguments.seed)
            edits.append(done)
            height, width = sample.picture.shape[:2]
            print(f"{done.name:12} {f'{width} × {height}':>10} {done.seconds:8.2f}  {done.remark}", flush=True)
            for label, pixels in done.pictures:
                name = f"{done.name}_{label}".replace(",", "").replace(" ", "_")
                Image.fromarray(pixels).save(arguments.out / f"{name}.png")
        contact_sheet(edits).save(arguments.out / "contact_sheet.png")
    except OSError as error:
        sys.exit(f"error: cannot write to {arguments.out}: {error.strerror or error}")
    print(f"\nall of them at once: {arguments.out / 'contact_sheet.png'}")


def _error(a: "NDArray[Any]", b: "NDArray[Any]") -> float:
    """Mean square error of values in 0..1."""
    return float(((a / 255.0 - b / 255.0) ** 2).mean())


def _resized(pixels: "NDArray[Any]", size: tuple[int, ...]) -> "NDArray[Any]":
    import numpy as np
    from PIL import Image

    return np.asarray(Image.fromarray(pixels).resize((size[0], size[1]), Image.Resampling.BICUBIC))


def _middle(pixels: "NDArray[Any]") -> "NDArray[Any]":
    """The middle half of a picture, where enlarging shows."""
    height, width = pixels.shape[:2]
    return pixels[height // 4 : height * 3 // 4, width // 4 : width * 3 // 4]


if __name__ == "__main__":
    main()
