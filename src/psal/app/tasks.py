"""What worker processes do: files in, files out, by the functions of :mod:`psal.editing`.

Arguments and results are what JSON has, since they come and go through a pipe.
"""

from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from PIL import Image

import psal
from psal.app import inside
from psal.app.limits import (
    INSIDE_SIDE,
    MOST_PIXELS,
    MOST_PIXELS_ENLARGED,
    MOST_PIXELS_REBUILT,
    PREVIEW_SIDE,
    megapixels,
)
from psal.app.previews import shown_size, write_preview
from psal.data.samples import samples
from psal.errors import UsageError
from psal.io.formats import FORMAT_BY_SUFFIX
from psal.io.masks import open_mask
from psal.io.photo import Photo
from psal.io.pictures import Progress, open_picture

NOTHING_MARKED = "nothing is marked: paint over what is to go, or give a mask"


class Task(Protocol):
    """A function that a worker may be asked for, by its name."""

    def __call__(self, *, progress: Progress, **arguments: Any) -> dict[str, Any]: ...


def warm_up() -> None:
    """Load what the first job would otherwise wait for."""
    picture, hole = np.zeros((32, 32, 3), np.uint8), np.zeros((32, 32), bool)
    picture[::2], hole[12:20, 12:20] = 255, True
    psal.inpaint(picture, hole, seed=0)


def write_samples(*, folder: str, progress: Progress) -> dict[str, Any]:
    """Write the sample pictures; returns their paths by the edit's name and the role that they have in it."""
    written: dict[str, dict[str, str]] = {}
    for sample in samples():
        roles = {"photo": sample.picture, "mask": sample.mask, "reference": sample.reference}
        for role, pixels in roles.items():
            if pixels is not None:
                path = Path(folder, f"{sample.name}_{role}.png")
                Photo(pixels).save(path)
                written.setdefault(sample.name, {})[role] = str(path)
    return written


def open_file(*, path: str, folder: str, progress: Progress) -> dict[str, Any]:
    """Look at a picture that was given: its size, and a preview of it.

    Returns:
        ``path``, ``width``, ``height``, ``preview`` (a file that browsers show).
    """
    pixels = Photo.open(path, MOST_PIXELS).pixels
    preview = write_preview(Path(folder, "preview"), pixels)
    return {"path": path, "width": pixels.shape[1], "height": pixels.shape[0], "preview": str(preview)}


def open_mask_file(*, path: str, photo: str, folder: str, progress: Progress) -> dict[str, Any]:
    """Look at a mask that was given for a photo.

    Returns:
        ``path`` of the mask, and a ``preview``, white in the hole, of the size of the photo's.
    """
    size = _size_of(photo)
    hole = open_mask(Photo.open(path, MOST_PIXELS).pixels, size, name=Path(path).name).numpy()
    kept, preview = Path(folder, "mask.png"), Path(folder, "preview.png")
    Photo(_white(hole)).save(kept)
    Photo(_white(_resized(hole, shown_size(size, PREVIEW_SIDE)))).save(preview)
    return {"path": str(kept), "preview": str(preview)}


def fill(
    *, photo: str, painted: str | None, mask: str | None, seed: int, folder: str, name: str, progress: Progress
) -> dict[str, Any]:
    """Fill a hole.

    Args:
        photo: a picture file.
        painted: what was painted on the preview: a picture that is opaque in the hole.
        mask: a mask of the photo's size that the painting began with; it holds where nobody painted or erased.
        seed: of the search.
        folder: for what is written.
        name: of the photo, as the visitor knows it.
        progress: called with the share that is done.

    Returns:
        Paths: ``result`` in the photo's format, ``working`` without loss, ``mask``, ``before`` and ``after`` to show;
        and the ``width`` and ``height``.
    """
    original = Photo.open(photo, MOST_PIXELS)
    hole = _hole(original.pixels.shape[:2], painted, mask)
    if not hole.any():
        raise UsageError(NOTHING_MARKED)
    pixels = psal.inpaint(original.pixels, hole, seed=seed, progress=_most_of(progress))
    out = _written(folder, name, "filled", pixels, original)
    mask_file = Path(folder, f"{Path(name).stem}_mask.png")
    Photo(_white(hole)).save(mask_file)
    return out | {"mask": str(mask_file)}


def colour(*, photo: str, reference: str, seed: int, folder: str, name: str, progress: Progress) -> dict[str, Any]:
    """Colour a grey picture; as :func:`fill`, without the mask."""
    original, colors = Photo.open(photo, MOST_PIXELS), Photo.open(reference, MOST_PIXELS)
    pixels = psal.colorize(original.pixels, colors.pixels, seed=seed, progress=_most_of(progress))
    return _written(folder, name, "coloured", pixels, original)


def rebuild(*, photo: str, reference: str, seed: int, folder: str, name: str, progress: Progress) -> dict[str, Any]:
    """Rebuild a picture from another; as :func:`colour`, and ``shifts``, a picture of where each pixel was found."""
    original, source = (Photo.open(path, MOST_PIXELS_REBUILT) for path in (photo, reference))
    pixels, shifts = psal.reconstruct(
        original.pixels, source.pixels, seed=seed, progress=_most_of(progress), return_shifts=True
    )
    shifts_file = Path(folder, f"{Path(name).stem}_shifts.png")
    Photo(shifts).save(shifts_file)
    shown = write_preview(Path(folder, "shifts"), shifts)
    return _written(folder, name, "rebuilt", pixels, original) | {
        "shifts": str(shifts_file),
        "shifts_shown": str(shown),
    }


def enlarge(*, photo: str, scale: float, seed: int, folder: str, name: str, progress: Progress) -> dict[str, Any]:
    """Enlarge a picture; as :func:`colour`."""
    original = Photo.open(photo, MOST_PIXELS)
    height, width = original.pixels.shape[:2]
    if height * width * scale**2 > MOST_PIXELS_ENLARGED:
        raise UsageError(
            f"the result would have {megapixels(int(height * width * scale**2))}, of which at most "
            f"{megapixels(MOST_PIXELS_ENLARGED)} can be made here: choose a smaller factor, or use psal upscale"
        )
    pixels = psal.upscale(original.pixels, scale, seed=seed, progress=_most_of(progress))
    return _written(folder, name, "enlarged", pixels, original)


def match(*, photo: str, reference: str | None, folder: str, progress: Progress, **settings: Any) -> dict[str, Any]:
    """Match two pictures, or one with itself, to look inside; see :func:`psal.app.inside.match`."""
    pictures = [Photo.open(path, MOST_PIXELS).pixels for path in (photo, reference or photo)]
    query, key = (open_picture(_small(pixels)).color for pixels in pictures)
    progress(0.1)
    return inside.match(query, key, Path(folder), inside.Settings(**settings))


def look(*, folder: str, row: int, column: int, progress: Progress, out: str) -> dict[str, Any]:
    """Where a pixel attends to; see :func:`psal.app.inside.look`."""
    return inside.look(Path(folder), row, column, Path(out))


def _written(folder: str, name: str, what: str, pixels: NDArray[Any], original: Photo) -> dict[str, Any]:
    """Write a result in the original's format, and what to show of before and after."""
    suffix = Path(name).suffix.lower()
    suffix = suffix if FORMAT_BY_SUFFIX.get(suffix) == original.format else _suffix_of(original.format)
    result = working = Path(folder, f"{Path(name).stem}_{what}{suffix}")
    original.with_pixels(pixels).save(result)
    if FORMAT_BY_SUFFIX[suffix] == "JPEG":  # so that going on from it does not add loss to loss
        working = Path(folder, "working.tif")
        original.with_pixels(pixels).save(working)
    before = write_preview(Path(folder, "before"), original.pixels, size=pixels.shape[:2])
    after = write_preview(Path(folder, "after"), pixels)
    return {
        "result": str(result), "working": str(working), "before": str(before), "after": str(after),
        "width": pixels.shape[1], "height": pixels.shape[0],
    }  # fmt: skip


def _suffix_of(kind: str | None) -> str:
    """How names of a format end; those that are only read become PNG."""
    return next((suffix for suffix, known in FORMAT_BY_SUFFIX.items() if known == kind), ".png")


def _hole(size: tuple[int, ...], painted: str | None, mask: str | None) -> NDArray[np.bool_]:
    """The hole at full size: the mask where nobody changed it on the preview, what was painted elsewhere."""
    height, width = size
    hole = np.zeros((height, width), bool)
    if mask is not None:
        hole = Photo.open(mask, MOST_PIXELS).pixels > 127
    if painted is None:
        return hole
    shown = shown_size((height, width), PREVIEW_SIDE)
    pixels = Photo.open(painted, PREVIEW_SIDE**2).pixels
    if pixels.ndim != 3 or pixels.shape[2] != 4 or pixels.shape[:2] != shown:
        raise UsageError(f"what was painted must be RGBA of {shown[1]} × {shown[0]} pixels, got {pixels.shape}")
    strokes = pixels[..., 3] > 127
    changed = strokes != _resized(hole, shown)
    return np.where(_resized(changed, (height, width)), _resized(strokes, (height, width)), hole)


def _resized(hole: NDArray[np.bool_], size: tuple[int, int]) -> NDArray[np.bool_]:
    if hole.shape == size:
        return hole
    image = Image.fromarray(_white(hole)).resize((size[1], size[0]), Image.Resampling.BILINEAR)
    return np.asarray(image) > 127


def _white(hole: NDArray[np.bool_]) -> NDArray[np.uint8]:
    return hole.astype(np.uint8) * 255


def _size_of(photo: str) -> tuple[int, int]:
    pixels = Photo.open(photo, MOST_PIXELS).pixels
    return pixels.shape[0], pixels.shape[1]


def _small(pixels: NDArray[Any]) -> NDArray[Any]:
    """A picture of 8 bits, no larger than what is looked into."""
    from psal.app.previews import shown_picture

    return np.asarray(shown_picture(pixels, INSIDE_SIDE).convert("RGB"))


def _most_of(progress: Progress) -> Progress:
    """Leaves a tenth for writing the files."""
    return lambda share: progress(0.9 * share)
