"""An open photograph: its canvas, the steps that led to it, and what the page shows of both."""

import secrets
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psal.app.canvas import LAYERS, Canvas, Layer
from psal.app.limits import MAX_STEP_BYTES, MAX_STEPS
from psal.app.raster import Box, Mask, grown, marked_box, slices, widened, within
from psal.app.steps import Bits, Fill, Group, Mark, Step, Whole, fill_of
from psal.errors import UsageError

ROOM = "the oldest steps were dropped, to keep the photograph within its share of the disk"


class Document:
    """A photograph that is edited.

    Args:
        folder: has ``photo/`` with the file as it came and ``original.npy``, and ``canvas/pixels.npy``.
        name: file name on the user's computer.
        kind: name of the file's format, such as ``"JPEG"``.
        profile: color profile, or None.
    """

    def __init__(self, folder: Path, name: str, kind: str | None, profile: bytes | None = None) -> None:
        self.id = secrets.token_hex(8)
        self.folder, self.name, self.kind, self.profile = folder, name, kind, profile
        self.file = folder / "photo" / "file"
        self.original: NDArray[Any] = np.load(folder / "original.npy", mmap_mode="r")
        self.canvas = Canvas(folder / "canvas")
        self.lock = threading.RLock()
        self.steps: list[Step] = []
        self.position = self.version = self.mask_version = self.dropped = 0
        self.saved: Step | None = None
        self.guide: tuple[str, Path] | None = None  # name and array of a rough fill to follow
        self._seen: tuple[int, dict[str, bool]] = (0, dict.fromkeys(LAYERS, False))
        self.changed: Box | None = None  # pixels that differ from those of the version before

    def new_path(self) -> Path:
        """A file for a step or a job."""
        return self.folder / f"{secrets.token_hex(8)}.npy"

    def mark(self, label: str, layer: Layer, box: Box, new: Mask) -> Mark | None:
        """Give a part of a mask new values, as a step; None if they are the old ones."""
        with self.lock:
            different = self.canvas.crop(layer, box) ^ new
            inner = marked_box(different)
            if inner is None:
                return None
            inside = box[0] + inner[0], box[1] + inner[1], box[0] + inner[2], box[1] + inner[3]
            step = Mark(label, layer, Bits(self.new_path(), inside, different[slices(inner)]))
            self.push(step)
            return step

    def marked(self, layer: Layer) -> Bits | None:
        """What is marked now, in a file of its own; None if nothing is."""
        with self.lock:
            box = marked_box(self.canvas.mask(layer))
            return Bits(self.new_path(), box, self.canvas.crop(layer, box)) if box else None

    def area_of(self, hole: Bits, feather: int) -> Bits:
        """What a fill changes: the hole itself if it has sharp edges, else also the pixels around it."""
        if not feather:
            return hole
        box = widened(hole.box, feather, self.canvas.size)
        mask = np.zeros((box[2] - box[0], box[3] - box[1]), bool)
        mask[within(hole.box, box)] = hole.mask()
        return Bits(self.new_path(), box, grown(mask, feather))

    def filled(self, fill: Fill, mark: Mark | None) -> None:
        """Take over a fill as a step, together with the stroke that started it."""
        with self.lock:
            np.save(fill.before, self.canvas.pixels[slices(fill.area.box)][fill.area.mask()])
            if mark is not None and self.last is mark:
                self.position -= 1
                self.steps = self.steps[: self.position]
                mark.revert(self.canvas)
                self.push(Group(mark, fill))
            else:
                self.push(fill)

    def replaced(self, label: str, folder: Path) -> None:
        """Take over a whole new picture, ``pixels.npy`` of a folder, as a step."""
        with self.lock:
            self.set_guide("", None)
            self.push(Whole(label, self.canvas, Canvas(folder)))

    def set_guide(self, name: str, path: Path | None) -> None:
        """Let the next fills follow a rough fill, or none."""
        with self.lock:
            if self.guide is not None:
                self.guide[1].unlink(missing_ok=True)
            self.guide = (name, path) if path else None

    def push(self, step: Step) -> None:
        """Apply a new step; steps that were taken back are forgotten."""
        with self.lock:
            self._forget(self.steps[self.position :], applied=False)
            self.steps = self.steps[: self.position]
            self._run(step, forwards=True)
            self.steps.append(step)
            self.position += 1
            self._make_room()

    def go_to(self, position: int) -> None:
        """Undo or redo steps until that many are applied.

        Raises:
            UsageError: if there are not that many.
        """
        with self.lock:
            if not 0 <= position <= len(self.steps):
                raise UsageError(f"there are {len(self.steps)} steps, and no step {position}")
            while self.position > position:
                self.position -= 1
                self._run(self.steps[self.position], forwards=False)
            while self.position < position:
                self._run(self.steps[self.position], forwards=True)
                self.position += 1

    @property
    def last(self) -> Step | None:
        """The step that was applied last."""
        return self.steps[self.position - 1] if self.position else None

    def choose(self, index: int) -> None:
        """Show another variant of the last fill.

        Raises:
            UsageError: if there is no such variant.
        """
        with self.lock:
            fill = self.last_fill()
            if not 0 <= index < len(fill.variants):
                raise UsageError(f"there are {len(fill.variants)} variants, and no variant {index + 1}")
            fill.choose(self.canvas, index)
            self._note(fill.changed())

    def add_variant(self, fill: Fill, values: Path, seed: int) -> None:
        """Take over and show another result for the hole of the last fill.

        Raises:
            UsageError: if another step came in between.
        """
        with self.lock:
            if fill_of(self.last) is not fill:
                values.unlink(missing_ok=True)
                raise UsageError("the photograph has changed meanwhile: ask for a variant again")
            fill.variants.append(values)
            fill.seeds.append(seed)
            self.choose(len(fill.variants) - 1)

    def last_fill(self) -> Fill:
        """The fill that was applied last.

        Raises:
            UsageError: if the last step is none.
        """
        fill = fill_of(self.last)
        if fill is None:
            raise UsageError("the last step is not a fill: remove something first")
        return fill

    def state(self) -> dict[str, Any]:
        """What the page shows, as JSON has it."""
        with self.lock:
            fill = fill_of(self.last)
            height, width = self.canvas.size
            return {
                "id": self.id, "name": self.name, "width": width, "height": height, "format": self.kind,
                "version": self.version, "mask_version": self.mask_version, "changed": self.changed,
                "steps": [step.label for step in self.steps], "position": self.position,
                "dropped": ROOM if self.dropped else None, "saved": self.saved is self.last,
                **self._marked(),
                "guide": self.guide[0] if self.guide else None,
                "variants": {"seeds": fill.seeds, "chosen": fill.chosen} if fill else None,
            }  # fmt: skip

    def _marked(self) -> dict[str, bool]:
        """Whether anything is marked on each layer; looked up once for every change."""
        if self._seen[0] != self.mask_version:
            self._seen = self.mask_version, {layer: bool(self.canvas.mask(layer).any()) for layer in LAYERS}
        return self._seen[1]

    def _run(self, step: Step, forwards: bool) -> None:
        self.canvas = step.apply(self.canvas) if forwards else step.revert(self.canvas)
        self._note(step.changed())

    def _note(self, changed: Box | None) -> None:
        self.mask_version += 1
        if changed is not None:
            self.version += 1
            self.changed = changed

    def _make_room(self) -> None:
        """Drop the oldest steps while there are too many, but never the last one."""
        while len(self.steps) > 1 and (
            len(self.steps) > MAX_STEPS or sum(step.bytes for step in self.steps) > MAX_STEP_BYTES
        ):
            self._forget([self.steps.pop(0)], applied=True)
            self.position -= 1
            self.dropped += 1

    def _forget(self, steps: Iterable[Step], applied: bool) -> None:
        for step in steps:
            step.forget(applied)
