"""Sheet of fills of DAVIS objects, one column for each version of psal.

Fill with each version, then put the sheet together, from the project's folder:
``python -m benchmarks.fill_sheet fill --data folder --out new`` and
``python -m benchmarks.fill_sheet sheet old new --data folder --out results/fills.jpg``.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from PIL import Image
from scipy import ndimage

import psal
from benchmarks.quality import Mask, Pixels
from psal.data import davis

FRAMES = 0, 30
GROWTH, MARGIN, HEIGHT = 8, 60, 150  # pixels: of the masks, around a hole, of a row


def objects(data: Path) -> Iterator[tuple[str, Pixels, Mask]]:
    """Frames of the val sequences with the object's grown mask."""
    root = data / "DAVIS"
    for sequence in sorted(davis.sequences(root, "val")):
        for path in (davis.frames(root, sequence)[number] for number in FRAMES):
            mask = np.asarray(Image.open(root / "Annotations/480p" / sequence / f"{path.stem}.png").convert("L")) > 127
            hole = ndimage.distance_transform_edt(~mask) <= GROWTH
            yield f"{sequence}_{path.stem}", np.asarray(Image.open(path).convert("RGB")), hole


def row(image: Pixels, hole: Mask, fills: list[Pixels]) -> Image.Image:
    """The surroundings of a hole: marked, then filled."""
    marked = image.copy()
    marked[hole & ~ndimage.binary_erosion(hole, iterations=2)] = 255, 0, 255
    (rows, columns), *_ = ndimage.find_objects(hole.astype(int))
    window = tuple(slice(max(0, side.start - MARGIN), side.stop + MARGIN) for side in (rows, columns))
    parts = [Image.fromarray(picture[window]) for picture in (marked, *fills)]
    width = round(HEIGHT * parts[0].width / parts[0].height)
    out = Image.new("RGB", (width * len(parts), HEIGHT))
    for number, part in enumerate(parts):
        out.paste(part.resize((width, HEIGHT)), (number * width, 0))
    return out


def main() -> None:
    """Fill, or put a sheet together."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task", choices=("fill", "sheet"))
    parser.add_argument("folders", nargs="*", type=Path, help="fills of the versions, left to right")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    rows = []
    for name, image, hole in objects(given.data):
        if given.task == "fill":
            given.out.mkdir(parents=True, exist_ok=True)
            Image.fromarray(psal.inpaint(image, hole, seed=0)).save(given.out / f"{name}.png")
        else:
            rows.append(row(image, hole, [np.asarray(Image.open(f / f"{name}.png")) for f in given.folders]))
    if rows:
        sheet = Image.new("RGB", (max(part.width for part in rows), HEIGHT * len(rows)))
        for number, part in enumerate(rows):
            sheet.paste(part, (0, HEIGHT * number))
        sheet.save(given.out, quality=88)


if __name__ == "__main__":
    main()
