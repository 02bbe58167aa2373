"""Marks on a photograph: strokes, lassos, rectangles, and changes of all that is marked."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from psal.app.canvas import LAYERS, Layer
from psal.app.document import Document
from psal.app.limits import MAX_BRUSH
from psal.app.raster import Box, Mask, box_of, grown, marked_box, polygon, slices, stroke, widened
from psal.app.reading import number, points_of, whole_number
from psal.app.steps import Mark
from psal.editing.registry import MAX_EDGE
from psal.errors import UsageError

LABELS = {"stroke": "Brush", "lasso": "Lasso", "rectangle": "Rectangle"}


def mark(document: Document, value: Any) -> Mark | None:
    """Apply a shape or a change to a mask, as a step.

    Args:
        document: the photograph.
        value: JSON object with a ``kind``: ``stroke`` (``points``, ``size``), ``lasso`` (``points``), ``rectangle``
            (``points``, two corners), each with ``erase``; ``grow`` (``pixels``), ``invert`` or ``clear``. Its
            ``layer`` is ``hole`` or ``source``.

    Returns:
        The step, or None if it changes nothing.

    Raises:
        UsageError: if it is no such object.
    """
    if not isinstance(value, dict) or not isinstance(value.get("kind"), str):
        raise UsageError("a mark must have a kind")
    layer: Layer = value.get("layer", "hole")
    if layer not in LAYERS:
        raise UsageError(f"the layer must be one of {', '.join(LAYERS)}")
    kind = value["kind"]
    if kind in LABELS:
        box, shape = _drawn(kind, value, document.canvas.size)
        if box[0] >= box[2] or box[1] >= box[3]:
            return None
        erase = value.get("erase") is True
        with document.lock:
            old = document.canvas.crop(layer, box)
            label = "Eraser" if erase else LABELS[kind]
            return document.mark(label, layer, box, old & ~shape if erase else old | shape)
    whole: Box = (0, 0, *document.canvas.size)
    with document.lock:
        if kind == "invert":
            return document.mark("Invert", layer, whole, ~document.canvas.crop(layer, whole))
        marked = marked_box(document.canvas.mask(layer))
        if kind == "clear":
            return document.mark("Clear", layer, marked, np.zeros(_size(marked), bool)) if marked else None
        if kind == "grow":
            pixels = whole_number(value.get("pixels"), "the growth", 1, MAX_EDGE)
            return _grow(document, layer, marked, pixels) if marked else None
    raise UsageError("this kind of mark is not known")


def mark_from_file(document: Document, layer: Layer, mask: Mask) -> Mark | None:
    """Mark what a mask file marks, and nothing else."""
    return document.mark("Mask", layer, (0, 0, *document.canvas.size), mask)


def _drawn(kind: str, value: dict[str, Any], size: tuple[int, int]) -> tuple[Box, Mask]:
    if kind == "stroke":
        points, diameter = points_of(value.get("points"), 1), number(value.get("size"), "the brush size")
        if not 1 <= diameter <= MAX_BRUSH:
            raise UsageError(f"the brush size must be from 1 to {MAX_BRUSH}")
        box = box_of(points, diameter / 2 + 1, size)
        return box, stroke(points, diameter, box)
    points = points_of(value.get("points"), 3 if kind == "lasso" else 2)
    points = points if kind == "lasso" else _corners(points)
    box = box_of(points, 1, size)
    return box, polygon(points, box)


def _corners(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """All four corners of the rectangle that two points span, with all pixels that it touches."""
    (left, top), (right, bottom) = np.floor(points.min(0)), np.ceil(points.max(0))
    return np.array([[left, top], [right, top], [right, bottom], [left, bottom]])


def _grow(document: Document, layer: Layer, marked: Box, pixels: int) -> Mark | None:
    box = widened(marked, pixels, document.canvas.size)
    return document.mark(f"Grow {pixels} px", layer, box, grown(document.canvas.mask(layer)[slices(box)], pixels))


def _size(box: Box) -> tuple[int, int]:
    return box[2] - box[0], box[3] - box[1]
