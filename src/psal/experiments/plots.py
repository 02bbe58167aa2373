"""How plots look: one colour and mark for a layer in all of them."""

from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib

from psal.io.atomic import write_atomically

matplotlib.use("Agg")  # draws into files, where there is no screen

from matplotlib import patches, pyplot

FAMILIES = {  # colour-blind safe (Okabe and Ito)
    "full": "#000000", "local": "#E69F00", "linear": "#CC79A7", "performer": "#56B4E9", "reformer": "#009E73",
    "psal": "#D55E00",
}  # fmt: skip
MARKS = {"-materialized": "s", "-chunked": "P", "-dot": "D", "1": "s", "3": "^", "7": "<", "-aggregate": "v"}
QUANTITIES = ("peak", 1e9, "memory, GB"), ("seconds", 1.0, "time, s")  # of a cell: name, unit, title


def figure(columns: int, width: float = 4.2, height: float = 3.6) -> tuple[Any, list[Any]]:
    """A canvas with so many plots side by side."""
    canvas, axes = pyplot.subplots(1, columns, figsize=(width * columns, height), layout="constrained", squeeze=False)
    for axis in axes[0]:
        axis.grid(True, which="major", alpha=0.3)
        axis.spines[["top", "right"]].set_visible(False)
    return canvas, list(axes[0])


def style_of(name: str) -> dict[str, Any]:
    """Colour by the kind of layer, and a mark by its variant."""
    family = next(family for family in FAMILIES if name.startswith(family))
    return {"color": FAMILIES[family], "marker": MARKS.get(name.removeprefix(family), "o")}


def save(canvas: Any, path: Path) -> None:
    """Write it as PNG, whole or not at all."""
    buffer = BytesIO()
    canvas.savefig(buffer, format="png", dpi=130)
    pyplot.close(canvas)
    write_atomically(path, buffer.getvalue())


def strip_of(pictures: dict[str, Any], zoom: int) -> Any:
    """Pictures of one size under their titles, a red square around the middle of each, and that enlarged below."""
    canvas, axes = pyplot.subplots(2, len(pictures), figsize=(2.0 * len(pictures), 4.3), layout="constrained")
    for column, (title, picture) in enumerate(pictures.items()):
        width, height = picture.size
        left, top, side = (width - width // zoom) // 2, (height - height // zoom) // 2, width // zoom
        axes[0, column].imshow(picture)
        axes[0, column].add_patch(
            patches.Rectangle((left, top), side, side, fill=False, edgecolor="red", linewidth=1.5)
        )
        axes[0, column].set_title(title, fontsize=8)
        axes[1, column].imshow(picture.crop((left, top, left + side, top + side)), interpolation="nearest")
        for axis in axes[:, column]:
            axis.set_axis_off()
    return canvas
