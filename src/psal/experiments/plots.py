"""The look of the plots: each layer has the same color and marker in all of them."""

from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
from torch import Tensor

from psal.data.image_folder import to_picture
from psal.io.atomic import write_atomically

matplotlib.use("Agg")  # draws into files, without a screen

from matplotlib import patches, pyplot

FAMILIES = {  # color-blind safe (Okabe and Ito)
    "full": "#000000", "local": "#E69F00", "linear": "#CC79A7", "performer": "#56B4E9", "reformer": "#009E73",
    "psal": "#D55E00", "exact": "#0072B2", "contextual": "#0072B2",
}  # fmt: skip
MARKERS = {"-materialized": "s", "-chunked": "P", "-dot": "D", "1": "s", "3": "^", "7": "<", "-aggregate": "v"}
STRIP_ZOOM = 4


class Cost(NamedTuple):
    """A cost to plot: its key in a cell, its unit and its title."""

    key: str
    unit: float
    title: str


MEMORY = Cost("peak", 1e9, "memory, GB")
TIME = Cost("seconds", 1.0, "time, s")
OPERATIONS = Cost("gigaflops", 1.0, "10⁹ operations")
COSTS = (MEMORY, TIME)


def figure(columns: int, width: float = 4.2, height: float = 3.6) -> tuple[Any, list[Any]]:
    """A canvas with ``columns`` plots side by side, each of that size in inches."""
    canvas, axes = pyplot.subplots(1, columns, figsize=(width * columns, height), layout="constrained", squeeze=False)
    for axis in axes[0]:
        axis.grid(True, which="major", alpha=0.3)
        axis.spines[["top", "right"]].set_visible(False)
    return canvas, list(axes[0])


def legend(axes: Sequence[Any]) -> None:
    """Put one legend for all plots to the right of the last."""
    axes[-1].legend(fontsize=7, loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False)


def style_of(name: str) -> dict[str, Any]:
    """Color by the family of the layer, marker by its variant."""
    family = next(family for family in FAMILIES if name.startswith(family))
    return {"color": FAMILIES[family], "marker": MARKERS.get(name.removeprefix(family), "o")}


def plot_growth(
    axis: Any, name: str, text: str, sizes: Sequence[float], values: Sequence[float], extrapolated: Sequence[bool]
) -> None:
    """Plot a layer's cost against the size of the maps; hollow markers are extrapolated.

    Args:
        axis: of matplotlib.
        name: the layer's name.
        text: its label.
        sizes, values: of its points.
        extrapolated: which of them were not measured.
    """
    style = style_of(name)
    axis.plot(sizes, values, label=text, linewidth=1.5, **style)
    hollow = [(x, y) for x, y, is_hollow in zip(sizes, values, extrapolated, strict=True) if is_hollow]
    axis.plot(
        [x for x, _ in hollow], [y for _, y in hollow],
        linestyle="none", marker=style["marker"], color=style["color"], markerfacecolor="white",
    )  # fmt: skip


def plot_loss_against(cost: Cost, axis: Any, points: Mapping[str, tuple[float, float]], labels: Sequence[str]) -> None:
    """Plot one point per layer on a logarithmic cost axis.

    Args:
        cost: the horizontal axis.
        axis: of matplotlib.
        points: cost and loss by the layer's name.
        labels: labels of the layers, in the same order.
    """
    for (name, (x, loss)), text in zip(points.items(), labels, strict=True):
        axis.plot(x / cost.unit, loss, linestyle="none", markersize=8, label=text, **style_of(name))
    axis.set_xscale("log")
    axis.xaxis.set_minor_formatter("")  # labels between powers of ten would overlap
    axis.set_xlabel(cost.title)


def save(canvas: Any, path: Path) -> None:
    """Write a canvas as PNG, atomically."""
    buffer = BytesIO()
    canvas.savefig(buffer, format="png", dpi=130)
    pyplot.close(canvas)
    write_atomically(path, buffer.getvalue())


def save_strip(images: Mapping[str, Tensor], path: Path) -> None:
    """Draw images of one size side by side under their titles, each with its center enlarged below.

    Args:
        images: by title, each ``(1, 3, H, W)`` in 0..1.
        path: the PNG to write.
    """
    canvas, axes = pyplot.subplots(2, len(images), figsize=(2.0 * len(images), 4.3), layout="constrained")
    for column, (title, image) in enumerate(images.items()):
        picture = to_picture(image[0])
        width, height = picture.size
        side = width // STRIP_ZOOM
        left, top = (width - side) // 2, (height - height // STRIP_ZOOM) // 2
        axes[0, column].imshow(picture)
        axes[0, column].add_patch(
            patches.Rectangle((left, top), side, side, fill=False, edgecolor="red", linewidth=1.5)
        )
        axes[0, column].set_title(title.replace(" → ", "\n→ "), fontsize=8)
        axes[1, column].imshow(picture.crop((left, top, left + side, top + side)), interpolation="nearest")
        for axis in axes[:, column]:
            axis.set_axis_off()
    save(canvas, path)


def save_grid(rows: Mapping[str, Mapping[str, Tensor]], path: Path) -> None:
    """Draw a grid of images; its rows and columns have titles.

    Args:
        rows: by title, the images by the title of their column: ``(1, 3, H, W)`` in 0..1, all of one size.
        path: the PNG to write.
    """
    columns = list(next(iter(rows.values())))
    canvas, axes = pyplot.subplots(
        len(rows),
        len(columns),
        figsize=(2.6 * len(columns), 1.6 * len(rows) + 0.3),
        layout="constrained",
        squeeze=False,
    )
    for line, (title, images) in zip(axes, rows.items(), strict=True):
        line[0].set_ylabel(title, fontsize=9)
        for axis, image in zip(line, images.values(), strict=True):
            axis.imshow(to_picture(image[0]))
            axis.set(xticks=[], yticks=[])
            axis.spines[:].set_visible(False)
    for axis, title in zip(axes[0], columns, strict=True):
        axis.set_title(title, fontsize=9)
    save(canvas, path)
