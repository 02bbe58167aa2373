"""Which places a pixel attends to, and with which weights: what *Look inside* shows.

The weights are those of :func:`psal.attend` and :func:`psal.aggregate`, for one query at a time.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

import psal
from psal.app import figure

SHOWN = 200  # places at most in the table and the picture: with aggregation there can be thousands


@dataclass(frozen=True)
class Settings:
    """Settings of the attention; see :func:`psal.patch_attention`. ``iterations`` below 0 stands for the default."""

    neighbors: int
    patch_size: int
    iterations: int
    init: str
    aggregate: bool
    temperature: float
    seed: int


class Place(NamedTuple):
    """A key that a query attends to."""

    row: int
    column: int
    weight: float


def attended_places(
    index: Tensor, score: Tensor, pixel: tuple[int, int], key_size: tuple[int, int],
    *, patch_size: int, aggregate: bool, temperature: float,
) -> list[Place]:  # fmt: skip
    """The keys that one query attends to, the heaviest first; those that several matches name are added up.

    Args:
        index, score: ``[k, H, W]``, of a :class:`psal.Matches`.
        pixel: (row, column) of the query.
        key_size: (H, W) of the key's map.
        patch_size: the window of the aggregation.
        aggregate: whether the matches of the whole window count, each shifted back.
        temperature: of the softmax.

    Returns:
        :class:`Place` of each; the weights sum to 1.
    """
    height, width = index.shape[1:]
    half = patch_size // 2 if aggregate else 0
    rows, columns = (
        torch.arange(max(0, at - half), min(side, at + half + 1))
        for at, side in zip(pixel, (height, width), strict=True)
    )
    found = index[:, rows[:, None], columns]  # [k, h, w]
    logit = score[:, rows[:, None], columns].double() / temperature
    at_row = found.div(key_size[1], rounding_mode="floor") - (rows - pixel[0])[:, None]
    at_column = found % key_size[1] - (columns - pixel[1])
    inside = (found >= 0) & (at_row >= 0) & (at_row < key_size[0]) & (at_column >= 0) & (at_column < key_size[1])
    if not inside.any():
        return []
    weight = logit[inside].softmax(0)
    place, inverse = torch.unique((at_row * key_size[1] + at_column)[inside], return_inverse=True)
    total = torch.zeros(len(place), dtype=weight.dtype).index_add_(0, inverse, weight)
    order = total.argsort(descending=True, stable=True)
    return [Place(int(place[i]) // key_size[1], int(place[i]) % key_size[1], float(total[i])) for i in order]


def match(query: Tensor, key: Tensor, folder: Path, settings: Settings) -> dict[str, Any]:
    """Match two pictures and keep what was found in a folder.

    Args:
        query, key: ``[3, H, W]``, 0..1.
        folder: for the matches and the pictures.
        settings: of the attention.

    Returns:
        (H, W) of the query as ``size``.
    """
    found = psal.patch_match(
        query[None], key[None], patch_size=settings.patch_size, neighbors=settings.neighbors,
        iterations=None if settings.iterations < 0 else settings.iterations, init=settings.init, seed=settings.seed,
    )  # fmt: skip
    np.save(folder / "index.npy", found.index[0].numpy().astype(np.int32))
    np.save(folder / "score.npy", found.score[0].numpy())
    for name, picture in (("photo", query), ("reference", key)):
        figure.image_of(picture).save(folder / f"{name}.png", compress_level=1)
    about = {"settings": asdict(settings), "key_size": list(key.shape[1:])}
    (folder / "about.json").write_text(json.dumps(about))
    return {"size": list(query.shape[1:])}


def look(folder: Path, row: int, column: int) -> dict[str, Any]:
    """Look from one pixel at what it attends to.

    Args:
        folder: that :func:`match` wrote to. It gets ``query.png`` and ``key.png``, the pictures with marks,
            ``figure.png``, both with lines between them, and ``places.csv``, all places.
        row, column: of the query, brought into the picture if they are not in it.

    Returns:
        ``places``, the heaviest as [row, column, weight], ``count`` of all, and the ``row`` and ``column`` looked from.
    """
    about = json.loads((folder / "about.json").read_text())
    settings, (key_height, key_width) = Settings(**about["settings"]), about["key_size"]
    index, score = (np.load(folder / f"{name}.npy", mmap_mode="r") for name in ("index", "score"))
    row, column = min(max(row, 0), index.shape[1] - 1), min(max(column, 0), index.shape[2] - 1)
    half = settings.patch_size // 2
    top, left = max(0, row - half), max(0, column - half)
    window = np.s_[:, top : row + half + 1, left : column + half + 1]
    places = attended_places(
        torch.from_numpy(index[window].astype(np.int64)), torch.from_numpy(np.array(score[window])),
        (row - top, column - left), (key_height, key_width),
        patch_size=settings.patch_size, aggregate=settings.aggregate, temperature=settings.temperature,
    )  # fmt: skip
    drawn = figure.draw(folder / "photo.png", folder / "reference.png", (row, column), places[:SHOWN])
    for name, picture in drawn.items():
        picture.save(folder / f"{name}.png", compress_level=1)
    lines = [f"{place.row},{place.column},{place.weight:.6g}" for place in places]
    (folder / "places.csv").write_text("\n".join(["row,column,weight", *lines]) + "\n")
    return {"places": [list(place) for place in places[:SHOWN]], "count": len(places), "row": row, "column": column}
