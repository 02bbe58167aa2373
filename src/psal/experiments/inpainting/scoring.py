"""Fill test pictures, and score what comes out."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import torch
from torch import Tensor

from psal.experiments.inpainting.fillers import Filler
from psal.experiments.inpainting.lpips import LPIPS
from psal.experiments.inpainting.metrics import score
from psal.experiments.inpainting.pictures import MaskedPicture, MaskedPictures

DRAWN = 5  # pictures in a strip
FillPicture = Callable[[MaskedPicture], Tensor]


def filled_by(filler: Filler, picture: MaskedPicture) -> Tensor:
    """Fill a picture; what is in the hole is hidden from the filler."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        filled = filler(torch.where(picture.hole, 0.5, picture.truth), picture.hole)
    return torch.where(picture.hole, filled, picture.truth)


def scores_of_pictures(
    fill: FillPicture,
    pictures: MaskedPictures,
    lpips: LPIPS | None,
    report: Callable[[int], None],
) -> dict[str, list[float]]:
    """Fill all pictures and return the metrics of each.

    Args:
        fill: fills a picture.
        pictures: the test pictures.
        lpips: network for the perceptual distance; None leaves it out.
        report: called with the number of pictures done.
    """
    scores: dict[str, list[float]] = {}
    for number, picture in enumerate(pictures, 1):
        for metric, value in score(fill(picture), picture.truth, picture.hole, lpips).items():
            scores.setdefault(metric, []).append(value)
        report(number)
    return scores


def draw_strip(fills: Mapping[str, FillPicture], pictures: MaskedPictures, path: Path) -> None:
    """Draw some of the pictures, evenly spaced, filled in each way."""
    from psal.experiments.plots import save_grid

    rows: dict[str, dict[str, Tensor]] = {}
    for picture in _evenly_spaced(pictures):
        images = {"given": torch.where(picture.hole, 1.0, picture.truth)}
        images |= {shown: fill(picture) for shown, fill in fills.items()}
        rows[picture.name] = images | {"truth": picture.truth}
    save_grid(rows, path)


def _evenly_spaced(pictures: Iterable[MaskedPicture]) -> list[MaskedPicture]:
    every = list(pictures)
    return every[:: max(1, len(every) // DRAWN)][:DRAWN]
