"""Tasks of the worker processes: files in, files out, by the edits of :mod:`psal.editing.registry`.

Arguments and results are JSON values, because they pass through a pipe.
"""

import os
import shutil
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from psal.app import inside
from psal.app.fill import fill as fill  # a task, too
from psal.app.limits import INSIDE_SIDE, MAX_PIXELS, MAX_RECONSTRUCT_PIXELS, MAX_UPSCALED_PIXELS, megapixels
from psal.data.samples import samples
from psal.editing.registry import EDITS
from psal.errors import UsageError
from psal.io.formats import FORMAT_BY_SUFFIX, to_uint8
from psal.io.masks import open_mask
from psal.io.photo import Photo
from psal.io.pictures import open_picture
from psal.progress import Progress


class Task(Protocol):
    """A function that a worker may be asked for, by its name."""

    def __call__(self, *, progress: Progress, **arguments: Any) -> dict[str, Any]: ...


def warm_up() -> None:
    """Load the libraries, so that the first job does not wait for them."""
    picture, hole = np.zeros((32, 32, 3), np.uint8), np.zeros((32, 32), bool)
    picture[::2], hole[12:20, 12:20] = 255, True
    EDITS["inpaint"].function(picture, hole, seed=0)


def write_sample(*, edit: str, role: str, path: str, progress: Progress) -> dict[str, Any]:
    """Write a picture of an edit's sample: its ``photo``, or its mask or reference."""
    sample = next(sample for sample in samples() if sample.edit == edit)
    pixels = sample.picture if role == "photo" else sample.partner
    if pixels is None:
        raise UsageError(f"{edit} takes one picture only")
    Photo(pixels).save(path)
    return {}


def open_photo(*, path: str, name: str, folder: str, progress: Progress) -> dict[str, Any]:
    """Read an uploaded photograph into arrays.

    Returns:
        ``format`` of the file. The folder gets ``original.npy``, ``canvas/pixels.npy`` and ``profile``, the color
        profile, which is empty if there is none.
    """
    photo = _open(path, name)
    np.save(Path(folder, "original.npy"), photo.pixels)
    Path(folder, "canvas").mkdir()
    shutil.copyfile(Path(folder, "original.npy"), Path(folder, "canvas", "pixels.npy"))
    Path(folder, "profile").write_bytes(photo.metadata.icc_profile or b"")
    return {"format": photo.format}


def read_mask(*, path: str, name: str, size: list[int], out: str, progress: Progress) -> dict[str, Any]:
    """Read an uploaded mask of a photograph of that (H, W) into a bool array."""
    np.save(out, open_mask(_open(path, name).pixels, (size[0], size[1]), name=name).numpy())
    return {}


def read_guide(*, path: str, name: str, size: list[int], out: str, progress: Progress) -> dict[str, Any]:
    """Read an uploaded rough fill of a photograph of that (H, W) into an array."""
    pixels = _open(path, name).pixels
    if _size(pixels) != (size[0], size[1]):
        raise UsageError(
            f"{name} is {pixels.shape[1]} × {pixels.shape[0]} pixels and the picture {size[1]} × {size[0]}: they must "
            "have the same size"
        )
    np.save(out, pixels)
    return {}


def edit(
    *, edit: str, pixels: str, partner: str | None, partner_name: str, options: dict[str, Any], threads: int,
    folder: str, progress: Progress,
) -> dict[str, Any]:  # fmt: skip
    """Run an edit of the whole picture: any but inpaint.

    Args:
        edit: name in :data:`psal.editing.registry.EDITS`.
        pixels: array file of the photograph.
        partner: picture file; None if the edit takes none.
        partner_name: its name on the user's computer.
        options: keyword arguments of the edit's function, the seed among them.
        threads: to use.
        folder: for ``pixels.npy``, the result.
        progress: called with the share that is done.
    """
    torch.set_num_threads(threads)
    photo = np.load(pixels)
    result = _run_edit(edit, photo, _open(partner, partner_name).pixels if partner else None, options, progress)
    np.save(Path(folder, "pixels.npy"), result)
    return {}


def edit_file(
    *, edit: str, photo: str, name: str, partner: str | None, partner_name: str,
    companions: dict[str, list[str]], options: dict[str, Any],
    suffix: str | None, threads: int, out: str, progress: Progress,
) -> dict[str, Any]:  # fmt: skip
    """Edit a picture file.

    Args:
        edit: name in :data:`psal.editing.registry.EDITS`.
        photo, partner: picture files; the partner is None if the edit takes none.
        name, partner_name: their names on the user's computer.
        companions: paths and names of further pictures, by the keyword.
        options: keyword arguments of the edit's function, the seed among them.
        suffix: of the result's format; None for the photo's.
        threads: to use.
        out: file to write, without a suffix.
        progress: called with the share that is done.

    Returns:
        ``path`` of the result.
    """
    torch.set_num_threads(threads)
    original = _open(photo, name)
    second: Any = _open(partner, partner_name).pixels if partner else None
    if edit == "inpaint":
        second = open_mask(second, _size(original.pixels), name=partner_name).numpy()
        if not second.any() and not options.get("invert"):
            raise UsageError(f"{partner_name} has no white in it: nothing is marked")
    for keyword, (path, own_name) in companions.items():
        pixels: Any = _open(path, own_name).pixels
        if keyword.endswith("mask"):
            pixels = open_mask(pixels, _size(original.pixels), name=own_name).numpy()
        options = options | {keyword: pixels}
    result = _run_edit(edit, original.pixels, second, options, lambda share: progress(0.9 * share))
    return {"path": _save(original.with_pixels(result), out, suffix or _suffix(name, original.format))}


def export(*, photo: str, name: str, pixels: str, suffix: str | None, out: str, progress: Progress) -> dict[str, Any]:
    """Write an edited photograph with the metadata of its file.

    Args:
        photo: the file as it came.
        name: its name on the user's computer.
        pixels: array file of the result.
        suffix: of the result's format; None for the photo's.
        out: file to write, without a suffix.
        progress: called with the share that is done.

    Returns:
        ``path`` of the result.
    """
    original = _open(photo, name)
    return {"path": _save(original.with_pixels(np.load(pixels)), out, suffix or _suffix(name, original.format))}


def export_mask(*, mask: str, out: str, progress: Progress) -> dict[str, Any]:
    """Write what is marked as a PNG, white in the hole."""
    Photo(np.load(mask).astype(np.uint8) * 255).save(out)
    return {"path": out}


def match(
    *, photo: str, reference: str, names: list[str], folder: str, threads: int, progress: Progress, **settings: Any
) -> dict[str, Any]:
    """Match two pictures, or one with itself, to look inside; see :func:`psal.app.inside.match`."""
    torch.set_num_threads(threads)
    pictures = [_open(path, name).pixels for path, name in zip((photo, reference), names, strict=True)]
    query, key = (open_picture(_small(pixels)).color for pixels in pictures)
    progress(0.1)
    return inside.match(query, key, Path(folder), inside.Settings(**settings))


def look(*, folder: str, row: int, column: int, progress: Progress) -> dict[str, Any]:
    """Find where a pixel attends to; see :func:`psal.app.inside.look`."""
    return inside.look(Path(folder), row, column)


def _run_edit(
    edit: str, photo: NDArray[Any], partner: NDArray[Any] | None, options: dict[str, Any], progress: Progress
) -> NDArray[Any]:
    if edit == "reconstruct":
        for pixels in (photo, partner):
            if pixels is not None and pixels.shape[0] * pixels.shape[1] > MAX_RECONSTRUCT_PIXELS:
                raise UsageError(f"reconstruct takes pictures of at most {megapixels(MAX_RECONSTRUCT_PIXELS)} here")
    scale = options.get("scale", 1.0)
    if scale > 1 and (count := int(photo.shape[0] * photo.shape[1] * scale**2)) > MAX_UPSCALED_PIXELS:
        raise UsageError(
            f"the result would have {megapixels(count)}, but at most {megapixels(MAX_UPSCALED_PIXELS)} are computed "
            "here: choose a smaller scale, or use the command psal upscale"
        )
    if edit == "outpaint" and (count := _outpainted(photo, options)) > MAX_PIXELS:
        raise UsageError(f"the result would have {megapixels(count)}, but at most {megapixels(MAX_PIXELS)} are kept")
    pictures = [photo] if partner is None else [photo, partner]
    result: NDArray[Any] = EDITS[edit].function(*pictures, **options, progress=progress)
    return result


def _outpainted(photo: NDArray[Any], options: dict[str, Any]) -> int:
    """Pixels of an extended picture."""
    height, width = _size(photo)
    return int((height + options["top"] + options["bottom"]) * (width + options["left"] + options["right"]))


def _open(path: str, name: str) -> Photo:
    """Open a file; messages call it by the name that it has on the user's computer."""
    try:
        return Photo.open(path, MAX_PIXELS)
    except ValueError as error:
        raise UsageError(str(error).replace(os.fspath(path), name)) from None


def _save(photo: Photo, out: str, suffix: str) -> str:
    path = f"{out}{suffix}"
    try:
        photo.save(path)
    except ValueError as error:
        raise UsageError(str(error).replace(path, f"a {suffix.lstrip('.').upper()} file")) from None
    return path


def _suffix(name: str, kind: str | None) -> str:
    """Suffix of a format's files, the name's own if it fits; .png for formats that cannot be written."""
    own = Path(name).suffix.lower()
    if FORMAT_BY_SUFFIX.get(own) == kind:
        return own
    return next((suffix for suffix, known in FORMAT_BY_SUFFIX.items() if known == kind), ".png")


def _size(pixels: NDArray[Any]) -> tuple[int, int]:
    return pixels.shape[0], pixels.shape[1]


def _small(pixels: NDArray[Any]) -> NDArray[Any]:
    """8-bit RGB, at most INSIDE_SIDE pixels per side."""
    image = Image.fromarray(to_uint8(pixels)).convert("RGB")
    image.thumbnail((INSIDE_SIDE, INSIDE_SIDE), Image.Resampling.BICUBIC)
    return np.asarray(image)
