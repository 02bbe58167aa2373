"""Read, edit and write one photo of an edit command."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from psal.cli.jobs import VARIANT, Job, Paths
from psal.cli.lengths import length_in_pixels
from psal.editing.registry import Edit
from psal.progress import Progress

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from psal.editing.shift_map import ShiftMap
    from psal.io.photo import Photo

NO_HOLE = "the mask has no white in it"
LEFT_GRAY = "left gray, as it shows nothing of the reference: --no-fade colors it all the same"


@dataclass(frozen=True)
class Request:
    """One call of an edit command.

    Attributes:
        edit: the edit to run.
        paths: files to read and write.
        options: keyword arguments of the edit's function, the seed and the device among them.
        threads: CPU threads; None for all cores.
        alpha: the mask is what is transparent: in the mask's file, or in the photo if there is none.
    """

    edit: Edit
    paths: Paths
    options: dict[str, Any]
    threads: int | None
    alpha: bool = False


@dataclass(frozen=True)
class Outcome:
    """What became of one photo.

    Attributes:
        note: for the user, or empty.
        unchanged: there was nothing to edit.
    """

    note: str = ""
    unchanged: bool = False


@dataclass(frozen=True)
class Made:
    """Result of an edit.

    Attributes:
        photo: the edited photo.
        shifts: where its pixels were found, if that is to be written.
        unchanged: reason if there was nothing to edit, else empty.
        variants: further results, the second best first.
    """

    photo: "Photo"
    shifts: "Photo | ShiftMap | None" = None
    unchanged: str = ""
    variants: "tuple[Photo, ...]" = ()


def edit_file(request: Request, job: Job, progress: Progress) -> Outcome:
    """Read, edit and write one photo."""
    from psal.cli.comparison import side_by_side
    from psal.io.formats import check_can_hold
    from psal.io.photo import Photo

    photo = Photo.open(job.photo)
    check_can_hold(job.out, photo.pixels)  # before the work
    made = Made(photo)
    if not job.keeps_out or "shifts" in job.extras:
        made = _edit(request, job, photo, progress)
    if job.keeps_out:
        made, note = Made(Photo.open(job.out), made.shifts), f"{job.out} is kept as it was"
    else:
        note = _save(job, photo, made)
        if request.options.get("fade") and _is_gray(made.photo):
            note = "; ".join(filter(None, [note, LEFT_GRAY]))
    for number, variant in enumerate(made.variants, 2):
        if path := job.extras.get(f"{VARIANT}{number}"):
            variant.save(path)
    if "shifts" in job.extras and made.shifts is not None:
        made.shifts.save(job.extras["shifts"])
    if "compare" in job.extras:
        Photo(side_by_side(photo.pixels, made.photo.pixels)).save(job.extras["compare"])
    return Outcome(note, bool(made.unchanged))


def _edit(request: Request, job: Job, photo: "Photo", progress: Progress) -> Made:
    """Run the edit on a photo."""
    from psal.editing.shift_map import empty_map
    from psal.io.masks import open_mask
    from psal.io.photo import Photo

    edit, options, size = request.edit, _in_pixels(request, photo), photo.pixels.shape[:2]
    pictures: list[Any] = [photo.pixels]
    if edit.partner == "mask":
        hole = _hole(request, job, photo)
        if not hole.any():
            copies = (photo,) * (request.paths.variants - 1)
            return Made(photo, empty_map(photo.height, photo.width), NO_HOLE, copies)
        own_alpha = "mask" not in job.partners  # what is filled then becomes opaque
        pictures.append(None if own_alpha else hole)
        if not own_alpha:
            options |= {"invert": False, "grow": 0}
    elif edit.partner:
        names = [name for name in partner_names(edit.partner, len(job.partners)) if name in job.partners]
        opened = [Photo.open(job.partners[name]).pixels for name in names]
        pictures.append(opened if len(opened) > 1 else opened[0])
    for companion in edit.companions:
        if path := job.partners.get(companion.flag):
            pixels = Photo.open(path).pixels
            is_mask = companion.name.endswith("_mask")
            options[companion.name] = open_mask(pixels, size, name=str(path)).numpy() if is_mask else pixels
    if request.paths.variants > 1:
        with_map = "shifts" in job.extras
        found = edit.function(
            *pictures, **options, variants=request.paths.variants, return_shifts=with_map, progress=progress
        )
        results = [result for result, _ in found] if with_map else found
        best, *others = (photo.with_pixels(result) for result in results)
        return Made(best, found[0][1] if with_map else None, variants=tuple(others))
    if "shifts" not in job.extras:
        return Made(photo.with_pixels(edit.function(*pictures, **options, progress=progress)))
    pixels, shifts = edit.function(*pictures, **options, return_shifts=True, progress=progress)
    return Made(photo.with_pixels(pixels), Photo(shifts) if edit.shifts == "picture" else shifts)


def partner_names(partner: str, count: int) -> list[str]:
    """What one or several partners of a kind are called: "reference", "reference 2" and so on."""
    return [partner, *(f"{partner} {number}" for number in range(2, count + 1))][:count]


def _in_pixels(request: Request, photo: "Photo") -> dict[str, Any]:
    """Options with lengths in pixels of this photo."""
    lengths = {option.name: getattr(photo, option.length_of) for option in request.edit.options if option.length_of}
    return request.options | {name: length_in_pixels(request.options[name], side) for name, side in lengths.items()}


def _hole(request: Request, job: Job, photo: "Photo") -> "NDArray[Any]":
    """The hole that a mask, or transparency, marks in a photo, bool ``(H, W)``."""
    from psal.editing.inpaint import open_hole
    from psal.io.masks import transparent_pixels
    from psal.io.photo import Photo
    from psal.io.pictures import open_raw

    path = job.partners.get("mask", job.photo)
    mask: Any = photo.pixels if path == job.photo else Photo.open(path).pixels
    if request.alpha:
        mask = transparent_pixels(open_raw(mask), str(path)).numpy()
    changes = {name: request.options[name] for name in ("invert", "grow")}
    return open_hole(mask, photo.pixels.shape[:2], **changes, name=str(path)).numpy()


def _is_gray(photo: "Photo") -> bool:
    colors = photo.pixels[..., :3]
    return bool((colors == colors[..., :1]).all())


def _save(job: Job, photo: "Photo", made: Made) -> str:
    """Write the result; return a note for the user, or an empty string."""
    from psal.io.atomic import write_atomically
    from psal.io.formats import loses_depth, output_format

    kind = output_format(job.out)
    if made.unchanged and photo.format == kind:
        write_atomically(job.out, job.photo.read_bytes())
        return f"{made.unchanged}: copied"
    made.photo.save(job.out)
    notes = [f"{made.unchanged}: converted only"] if made.unchanged else []
    if loses_depth(job.out, made.photo.pixels):
        notes.append(f"8 bits per channel: {kind} has no 16")
    return "; ".join(notes)
