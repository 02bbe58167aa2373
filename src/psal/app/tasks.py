"""Tasks of the worker processes: files in, files out, by the edits of :mod:`psal.editing.registry`.

Arguments and results are JSON values, because they pass through a pipe.
"""

from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from psal.app import inside
from psal.app.limits import (
    INSIDE_SIDE,
    MAX_PIXELS,
    MAX_RECONSTRUCT_PIXELS,
    MAX_UPSCALED_PIXELS,
    PREVIEW_SIDE,
    megapixels,
)
from psal.app.previews import shown_size, write_preview
from psal.data.samples import samples
from psal.editing.registry import EDITS
from psal.errors import UsageError
from psal.io.formats import FORMAT_BY_SUFFIX
from psal.io.masks import open_mask
from psal.io.photo import Photo
from psal.io.pictures import open_picture
from psal.progress import Progress

NOTHING_MARKED = "nothing is marked: paint over what to remove, or give a mask"


class Task(Protocol):
    """A function that a worker may be asked for, by its name."""

    def __call__(self, *, progress: Progress, **arguments: Any) -> dict[str, Any]: ...


def warm_up() -> None:
    """Load the libraries, so that the first job does not wait for them."""
    picture, hole = np.zeros((32, 32, 3), np.uint8), np.zeros((32, 32), bool)
    picture[::2], hole[12:20, 12:20] = 255, True
    EDITS["inpaint"].function(picture, hole, seed=0)


def write_samples(*, folder: str, progress: Progress) -> dict[str, Any]:
    """Write the sample pictures; return their paths by the edit's name and the picture's role in it."""
    written: dict[str, dict[str, str]] = {}
    for sample in samples():
        roles = {"photo": sample.picture, EDITS[sample.edit].partner: sample.partner}
        for role, pixels in roles.items():
            if role is not None and pixels is not None:
                path = Path(folder, f"{sample.edit}_{role}.png")
                Photo(pixels).save(path)
                written.setdefault(sample.edit, {})[role] = str(path)
    return written


def open_file(*, path: str, folder: str, progress: Progress) -> dict[str, Any]:
    """Read an uploaded picture: its size, and a preview.

    Returns:
        ``path``, ``width``, ``height``, ``preview`` (a file that browsers show).
    """
    pixels = Photo.open(path, MAX_PIXELS).pixels
    preview = write_preview(Path(folder, "preview"), pixels)
    return {"path": path, "width": pixels.shape[1], "height": pixels.shape[0], "preview": str(preview)}


def open_mask_file(*, path: str, photo: str, folder: str, progress: Progress) -> dict[str, Any]:
    """Read an uploaded mask of a photo.

    Returns:
        ``path`` of the mask, and a ``preview``, white in the hole, of the size of the photo's.
    """
    size = _size_of(photo)
    hole = open_mask(Photo.open(path, MAX_PIXELS).pixels, size, name=Path(path).name).numpy()
    kept, preview = Path(folder, "mask.png"), Path(folder, "preview.png")
    Photo(_white(hole)).save(kept)
    Photo(_white(_resized(hole, shown_size(size, PREVIEW_SIDE)))).save(preview)
    return {"path": str(kept), "preview": str(preview)}


def inpaint(
    *, photo: str, painted: str | None, mask: str | None, seed: int, folder: str, name: str, progress: Progress
) -> dict[str, Any]:
    """Fill what was painted over.

    Args:
        photo: picture file.
        painted: PNG of what was painted on the preview, opaque in the hole, or None.
        mask: mask of the photo's size that painting began with, or None; it holds where nothing was painted or erased.
        seed: seed of the search.
        folder: folder to write to.
        name: file name of the photo in the user's file system.
        progress: called with the share that is done.

    Returns:
        Paths: ``result`` in the photo's format, ``working`` without loss, ``mask``, ``before`` and ``after`` to show;
        and the ``width`` and ``height``.
    """
    original = Photo.open(photo, MAX_PIXELS)
    hole = _hole(original.pixels.shape[:2], painted, mask)
    if not hole.any():
        raise UsageError(NOTHING_MARKED)
    pixels = EDITS["inpaint"].function(original.pixels, hole, seed=seed, progress=_most_of(progress))
    mask_file = Path(folder, f"{Path(name).stem}_mask.png")
    Photo(_white(hole)).save(mask_file)
    return _write_result(folder, name, "inpaint", original.with_pixels(pixels), original) | {"mask": str(mask_file)}


def edit(
    *, edit: str, photo: str, partner: str | None, options: dict[str, Any], folder: str, name: str, progress: Progress
) -> dict[str, Any]:
    """Run an edit without painting: any but inpaint.

    Args:
        edit: name in :data:`psal.editing.registry.EDITS`.
        photo, partner: picture files; the partner is None if the edit takes none.
        options: keyword arguments of the edit's function, the seed among them.
        folder, name, progress: as for :func:`inpaint`.

    Returns:
        As for :func:`inpaint`, without the mask; for reconstruct also ``shifts``, a picture of where each pixel was
        found, and ``shifts_shown``, its preview.
    """
    chosen = EDITS[edit]
    max_pixels = MAX_RECONSTRUCT_PIXELS if edit == "reconstruct" else MAX_PIXELS
    original = Photo.open(photo, max_pixels)
    _check_result_size(original, options.get("scale", 1.0))
    pictures = [original.pixels] + ([Photo.open(partner, max_pixels).pixels] if partner else [])
    if chosen.shifts == "picture":
        options = options | {"return_shifts": True}
    made = chosen.function(*pictures, **options, progress=_most_of(progress))
    if chosen.shifts != "picture":
        return _write_result(folder, name, edit, original.with_pixels(made), original)
    pixels, shifts = made
    shifts_file = Path(folder, f"{Path(name).stem}_shifts.png")
    Photo(shifts).save(shifts_file)
    return _write_result(folder, name, edit, original.with_pixels(pixels), original) | {
        "shifts": str(shifts_file),
        "shifts_shown": str(write_preview(Path(folder, "shifts"), shifts)),
    }


def _check_result_size(photo: Photo, scale: float) -> None:
    if scale > 1 and (pixels := int(photo.height * photo.width * scale**2)) > MAX_UPSCALED_PIXELS:
        raise UsageError(
            f"the result would have {megapixels(pixels)}, but at most {megapixels(MAX_UPSCALED_PIXELS)} are computed "
            "here: choose a smaller scale, or use the command psal upscale"
        )


def match(*, photo: str, reference: str | None, folder: str, progress: Progress, **settings: Any) -> dict[str, Any]:
    """Match two pictures, or one with itself, to look inside; see :func:`psal.app.inside.match`."""
    pictures = [Photo.open(path, MAX_PIXELS).pixels for path in (photo, reference or photo)]
    query, key = (open_picture(_small(pixels)).color for pixels in pictures)
    progress(0.1)
    return inside.match(query, key, Path(folder), inside.Settings(**settings))


def look(*, folder: str, row: int, column: int, progress: Progress, out: str) -> dict[str, Any]:
    """Find where a pixel attends to; see :func:`psal.app.inside.look`."""
    return inside.look(Path(folder), row, column, Path(out))


def _write_result(folder: str, name: str, edit: str, made: Photo, original: Photo) -> dict[str, Any]:
    """Write a result in the original's format, and previews of before and after."""
    suffix = Path(name).suffix.lower()
    suffix = suffix if FORMAT_BY_SUFFIX.get(suffix) == original.format else _suffix_of(original.format)
    result = working = Path(folder, f"{Path(name).stem}_{edit}{suffix}")
    made.save(result)
    if FORMAT_BY_SUFFIX[suffix] == "JPEG":  # further edits of the result must not add loss to loss
        working = Path(folder, "working.tif")
        made.save(working)
    before = write_preview(Path(folder, "before"), original.pixels, size=made.pixels.shape[:2])
    after = write_preview(Path(folder, "after"), made.pixels)
    return {
        "result": str(result), "working": str(working), "before": str(before), "after": str(after),
        "width": made.width, "height": made.height,
    }  # fmt: skip


def _suffix_of(kind: str | None) -> str:
    """Suffix of a format's files; .png for formats that cannot be written."""
    return next((suffix for suffix, known in FORMAT_BY_SUFFIX.items() if known == kind), ".png")


def _hole(size: tuple[int, ...], painted: str | None, mask: str | None) -> NDArray[np.bool_]:
    """The hole at full size: the mask, except where painting or erasing on the preview changed it."""
    height, width = size
    hole = np.zeros((height, width), bool)
    if mask is not None:
        hole = Photo.open(mask, MAX_PIXELS).pixels > 127
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
    pixels = Photo.open(photo, MAX_PIXELS).pixels
    return pixels.shape[0], pixels.shape[1]


def _small(pixels: NDArray[Any]) -> NDArray[Any]:
    """8-bit RGB, at most INSIDE_SIDE pixels per side."""
    from psal.app.previews import shown_picture

    return np.asarray(shown_picture(pixels, INSIDE_SIDE).convert("RGB"))


def _most_of(progress: Progress) -> Progress:
    """Scale progress so that a tenth is left for writing the files."""
    return lambda share: progress(0.9 * share)
