"""Steps of an edit: each can be applied and taken back, and keeps only what it changed."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from psal.app.canvas import Canvas, Layer
from psal.app.raster import Box, Mask, slices


class Step(Protocol):
    """A change of a photograph or of what is marked on it."""

    @property
    def label(self) -> str:
        """Its name in the list of steps."""

    @property
    def bytes(self) -> int:
        """That it keeps on disk."""

    def apply(self, canvas: Canvas) -> Canvas:
        """Do it (again); returns the canvas to go on with."""

    def revert(self, canvas: Canvas) -> Canvas:
        """Take it back; returns the canvas to go on with."""

    def changed(self) -> Box | None:
        """Part of the picture whose pixels change; None if none do."""

    def forget(self, applied: bool) -> None:
        """Remove its files; ``applied`` says on which side of it the photograph is."""


class Bits:
    """A mask in a box, one bit per pixel, in a file.

    Args:
        path: of the file.
        box: that the mask covers.
        mask: bool, of the box's size.
    """

    def __init__(self, path: Path, box: Box, mask: Mask) -> None:
        self.path, self.box = path, box
        self.count = int(mask.sum())
        packed = np.packbits(mask)
        np.save(path, packed)
        self.bytes = packed.nbytes

    def mask(self) -> Mask:
        """bool, of the box's size."""
        return unpack(self.path, self.box)


def unpack(path: Path, box: Box) -> Mask:
    """Read the mask of a box."""
    size = box[2] - box[0], box[3] - box[1]
    return np.unpackbits(np.load(path), count=size[0] * size[1]).reshape(size).astype(bool)


@dataclass
class Mark:
    """Pixels of a mask that changed."""

    label: str
    layer: Layer
    bits: Bits

    @property
    def bytes(self) -> int:
        return self.bits.bytes

    def apply(self, canvas: Canvas) -> Canvas:
        canvas.mask(self.layer)[slices(self.bits.box)] ^= self.bits.mask()
        return canvas

    revert = apply

    def changed(self) -> Box | None:
        return None

    def forget(self, applied: bool) -> None:
        self.bits.path.unlink(missing_ok=True)


@dataclass
class Fill:
    """Pixels of a hole that were filled, in one or several variants.

    Attributes:
        hole: what was marked.
        area: pixels that the fill changes: the hole, and what is around it if the fill fades into the photograph.
        before: file of the pixels before, ``(N, …)``, in the order of the area's pixels.
        variants: files of the pixels after.
        seeds: of the variants.
        settings: of the fill, to make further variants with.
        chosen: index of the variant that shows.
    """

    label: str
    hole: Bits
    area: Bits
    before: Path
    variants: list[Path]
    seeds: list[int]
    settings: dict[str, Any] = field(default_factory=dict)
    chosen: int = 0

    @property
    def bytes(self) -> int:
        return sum(path.stat().st_size for path in {self.hole.path, self.area.path, self.before, *self.variants})

    def apply(self, canvas: Canvas) -> Canvas:
        self._put(canvas, self.variants[self.chosen])
        canvas.mask("hole")[slices(self.hole.box)] &= ~self.hole.mask()
        return canvas

    def revert(self, canvas: Canvas) -> Canvas:
        self._put(canvas, self.before)
        canvas.mask("hole")[slices(self.hole.box)] |= self.hole.mask()
        return canvas

    def choose(self, canvas: Canvas, index: int) -> None:
        """Show another variant."""
        self.chosen = index
        self._put(canvas, self.variants[index])

    def _put(self, canvas: Canvas, values: Path) -> None:
        canvas.pixels[slices(self.area.box)][self.area.mask()] = np.load(values)

    def changed(self) -> Box | None:
        return self.area.box

    def forget(self, applied: bool) -> None:
        source = [Path(self.settings["source"][1])] if self.settings.get("source") else []
        for path in (self.hole.path, self.area.path, self.before, *self.variants, *source):
            path.unlink(missing_ok=True)


@dataclass
class Whole:
    """An edit that gives the whole picture new pixels, perhaps of another size."""

    label: str
    before: Canvas
    after: Canvas

    @property
    def bytes(self) -> int:
        return self.before.bytes

    def apply(self, canvas: Canvas) -> Canvas:
        return self.after

    def revert(self, canvas: Canvas) -> Canvas:
        return self.before

    def changed(self) -> Box | None:
        size = max(self.before.size[0], self.after.size[0]), max(self.before.size[1], self.after.size[1])
        return 0, 0, *size

    def forget(self, applied: bool) -> None:
        (self.before if applied else self.after).remove()


@dataclass
class Group:
    """A stroke and the fill that it started: one step for who paints."""

    mark: Mark
    fill: Fill

    @property
    def label(self) -> str:
        return self.fill.label

    @property
    def bytes(self) -> int:
        return self.mark.bytes + self.fill.bytes

    def apply(self, canvas: Canvas) -> Canvas:
        return self.fill.apply(self.mark.apply(canvas))

    def revert(self, canvas: Canvas) -> Canvas:
        return self.mark.revert(self.fill.revert(canvas))

    def changed(self) -> Box | None:
        return self.fill.changed()

    def forget(self, applied: bool) -> None:
        self.mark.forget(applied)
        self.fill.forget(applied)


def fill_of(step: Step | None) -> Fill | None:
    """The fill of a step, if it has one."""
    if isinstance(step, Group):
        return step.fill
    return step if isinstance(step, Fill) else None
