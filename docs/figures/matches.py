"""Draw what the search finds on the bundled stereo pair: ``python docs/figures/matches.py``.

Writes ``shift_maps``, ``neighbors`` and ``temperature`` to ``docs/images``. Needs ``psal[bench]``.
"""

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from PIL import Image
from torch import Tensor

import psal
from psal.data.samples import stereo_views
from psal.editing.shift_colors import color_shifts

IMAGES = Path(__file__).parents[1] / "images"
SIZE = 320, 216  # width, height of the views
PATCH = 7
QUERY = 255, 114  # column, row of the pixel whose neighbors are shown: the front fender
TEMPERATURE = 0.5
COLORS = "#ffffff", "#ffb300", "#00e676", "#40c4ff"  # of the query and its neighbors


def views() -> tuple[Tensor, Tensor]:
    """Left and right view, each ``(1, 3, H, W)`` in 0..1."""
    left, right = (np.asarray(view.resize(SIZE, Image.Resampling.BICUBIC)) for view in stereo_views())
    return tuple(torch.from_numpy(x.copy()).permute(2, 0, 1)[None].float() / 255 for x in (left, right))  # type: ignore[return-value]


def shift_maps(query: Tensor, key: Tensor) -> None:
    """Shift maps of both kinds of search as they go on, with the cost of the best match over the exact one."""
    exact = psal.exact_match(query, key, patch_size=PATCH, neighbors=1)
    shown: list[tuple[str, psal.Matches]] = []
    for iterations in (0, 1, 2, 5):
        found = psal.patch_match(query, key, patch_size=PATCH, init="random", iterations=iterations, seed=0)
        shown.append((f'init="random", iterations={iterations}', found))
    for iterations in (0, 1, 2):
        found = psal.patch_match(query, key, patch_size=PATCH, init="tree", iterations=iterations, seed=0)
        shown.append((f'init="tree", iterations={iterations}', found))
    figure, axes = plt.subplots(2, 4, figsize=(11, 4.9))
    for axis, (title, found) in zip(axes.flat, [*shown, ("exact search", exact)], strict=True):
        cost = psal.match_quality(found, exact).cost_ratio
        draw(axis, color_shifts(found, key.shape[3])[None] / 255, f"{title}\ncost {cost:.3f} × exact", size=9)
    save(figure, "shift_maps.webp")


def neighbors(query: Tensor, key: Tensor) -> None:
    """One query patch and its three neighbors, in place and enlarged."""
    matches = psal.patch_match(query, key, patch_size=PATCH, neighbors=3, seed=0)
    column, row = QUERY
    weights = torch.softmax(matches.score[0, :, row, column] / TEMPERATURE, 0)
    figure = plt.figure(figsize=(11, 5.6))
    places = figure.add_gridspec(2, 4, height_ratios=(3.3, 1.7))
    left, right = figure.add_subplot(places[0, :2]), figure.add_subplot(places[0, 2:])
    draw(left, query, "query: a pixel and its patch", size=11)
    draw(right, key, "key: the patches of its k = 3 neighbors", size=11)
    mark(left, column, row, COLORS[0])
    patch = figure.add_subplot(places[1, 0])
    draw(patch, crop(query, column, row), "query patch", size=11)
    for n, color in enumerate(COLORS[1:]):
        y, x = divmod(int(matches.index[0, n, row, column]), key.shape[3])
        mark(right, x, y, color)
        patch = figure.add_subplot(places[1, n + 1])
        draw(patch, crop(key, x, y), f"neighbor {n + 1}, weight {weights[n]:.2f}", size=11)
        mark(patch, PATCH // 2, PATCH // 2, color)
    save(figure, "neighbors.webp")


def temperatures(query: Tensor, key: Tensor) -> None:
    """A part of the left view rebuilt from the right one, by temperature, without and with aggregation."""
    matches = psal.patch_match(query, key, patch_size=PATCH, neighbors=8, seed=0)
    part = slice(70, 150), slice(90, 210)
    figure, axes = plt.subplots(2, 5, figsize=(11, 3.7))
    draw(axes[0, 0], query[..., *part], "the query itself", size=9)
    axes[1, 0].axis("off")
    for column, temperature in enumerate((0.001, 0.03, 1.0, 30.0), 1):
        attended = psal.attend(matches, key, temperature=temperature)
        aggregated = psal.aggregate(matches, key, patch_size=PATCH, temperature=temperature)
        draw(axes[0, column], attended[..., *part], f"attend, temperature {temperature:g}", size=9)
        draw(axes[1, column], aggregated[..., *part], f"aggregate, temperature {temperature:g}", size=9)
    save(figure, "temperature.webp")


def draw(axis: Axes, picture: Tensor, title: str, *, size: int) -> None:
    """A picture ``(1, 3, H, W)`` in 0..1."""
    axis.imshow(picture[0].detach().permute(1, 2, 0).clamp(0, 1).numpy(), interpolation="nearest")
    axis.set_title(title, fontsize=size)
    axis.axis("off")


def crop(picture: Tensor, column: int, row: int) -> Tensor:
    """The patch around a pixel that is not near the border."""
    radius = PATCH // 2
    return picture[..., row - radius : row + radius + 1, column - radius : column + radius + 1]


def mark(axis: Axes, column: int, row: int, color: str) -> None:
    """The outline of a patch."""
    corner: Any = column - PATCH / 2, row - PATCH / 2
    axis.add_patch(Rectangle(corner, PATCH, PATCH, fill=False, edgecolor=color, linewidth=1.8))


def save(figure: Figure, name: str) -> None:
    """WebP: photographs with sharp labels, in little space."""
    figure.tight_layout(pad=0.5)
    figure.savefig(IMAGES / name, dpi=130, pil_kwargs={"quality": 85, "method": 6})
    plt.close(figure)


if __name__ == "__main__":
    left, right = views()
    shift_maps(left, right)
    neighbors(left, right)
    temperatures(left, right)
