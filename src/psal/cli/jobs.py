"""Jobs of an edit command: which files to read and write, for one photo or a folder of them."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from psal.editing.registry import SHIFT_MAP_SUFFIX
from psal.errors import UsageError
from psal.io.atomic import DiskFullError, check_folder_is_writable
from psal.io.formats import FORMAT_BY_SUFFIX, READ_SUFFIXES, output_format
from psal.messages import describe

VARIANT = "variant"  # and its number, among the extras of a job
FOLDER_ENDS = tuple(end for end in (os.sep, os.altsep) if end)  # pathlib drops a trailing one


@dataclass(frozen=True)
class Paths:
    """Paths as the user gave them.

    Attributes:
        photo: a picture, or a folder of them.
        out: file or folder to write to; a folder of photos needs a folder, which is created. A name without a suffix
            and one with a trailing slash are folders.
        partners: other pictures that the edit takes, by what they are called ("mask", "guide", …): one for all photos,
            or a folder with one of the same stem for each.
        shifts: file or folder for the shifts, or None.
        shifts_suffix: of the shifts in a folder.
        compare: also write before and after side by side, beside ``out``, with "_compare" after its stem.
        variants: how many results to write; the second one beside ``out``, with "_variant2" after its stem, and so on.
        overwrite: replace existing files. Without it, an existing file is an error for a single photo. In a folder,
            photos with all their outputs are skipped, and for the others only missing outputs are written; variants
            are written all together or not at all.
    """

    photo: Path
    out: str
    partners: dict[str, Path] = field(default_factory=dict)
    shifts: str | None = None
    shifts_suffix: str = ".png"
    compare: bool = False
    variants: int = 1
    overwrite: bool = False


@dataclass(frozen=True)
class Job:
    """One photo to edit.

    Attributes:
        photo: file to read.
        out: file to write.
        partners: other pictures to read, by what they are called.
        extras: further files to write, by name ("compare", "shifts", "variant2", …).
        keeps_out: ``out`` exists and is kept; only the extras are missing.
    """

    photo: Path
    out: Path
    partners: dict[str, Path] = field(default_factory=dict)
    extras: dict[str, Path] = field(default_factory=dict)
    keeps_out: bool = False


@dataclass(frozen=True)
class Plan:
    """All jobs of a command.

    Attributes:
        jobs: jobs to run.
        skipped: how many photos have all their outputs.
        failures: one line for each photo that cannot be edited.
        passed_over: one line for each file of a folder that is not used, with the reason.
    """

    jobs: list[Job]
    skipped: int
    failures: list[str]
    passed_over: list[str]


def plan_jobs(paths: Paths) -> Plan:
    """Pair photos with masks or references and with the files to write.

    Raises:
        UsageError: if the paths do not fit together.
        OSError: if a folder cannot be written to.
    """
    many = paths.photo.is_dir()
    passed_over: list[str] = []
    photos = _pictures_in(paths.photo, passed_over) if many else [_existing(paths.photo)]
    partners = {name: _partners(name, path, photos, passed_over) for name, path in paths.partners.items()}
    jobs: list[Job] = []
    failures: list[str] = []
    for photo in photos:
        try:
            found = {name: _partner(name, paths.partners[name], photo, group) for name, group in partners.items()}
        except UsageError as error:
            if not many:
                raise
            failures.append(str(error))
            continue
        out = _output(photo, paths.out, many)
        extras = {
            f"{VARIANT}{number}": out.with_name(f"{out.stem}_variant{number}{out.suffix}")
            for number in range(2, paths.variants + 1)
        }
        if paths.shifts is not None:
            extras["shifts"] = _output(photo, paths.shifts, many, suffix=paths.shifts_suffix)
        if paths.compare:
            extras["compare"] = out.with_name(f"{out.stem}_compare.png")
        jobs.append(Job(photo, out, found, extras))
    _check_outputs(jobs)
    if not many and not paths.overwrite:
        for output in _outputs(jobs[0]):
            if output.exists():
                raise UsageError(f"{output} exists: add --overwrite to replace it, or choose another name")
    plan = Plan(jobs, 0, [], []) if paths.overwrite else _without_existing(jobs)
    for folder in {output.parent for job in plan.jobs for output in _outputs(job)}:
        check_folder_is_writable(folder)
    return replace(plan, failures=failures + plan.failures, passed_over=passed_over + plan.passed_over)


def run_jobs(jobs: list[Job], work: Callable[[int, Job], None]) -> list[str]:
    """Run jobs one after the other; a failed one does not stop the rest, unless the disk is full.

    Args:
        jobs: from :func:`plan_jobs`.
        work: reads, edits and writes one photo, given the count of earlier jobs and the job. It must write ``out``
            before the extras: after an interruption, missing extras are added to an existing ``out``.

    Returns:
        One line for each failed job.
    """
    failures = []
    for count, job in enumerate(jobs):
        try:
            work(count, job)
        except ImportError:
            raise
        except DiskFullError as error:
            left = len(jobs) - count - 1
            failures.append(f"{error}" + (f" (stopped, with {left} more to do)" if left else ""))
            break
        except Exception as error:  # whatever is wrong with one photo, the others are still edited
            line = describe(error)
            failures.append(line if line.startswith(str(job.photo)) else f"{job.photo}: {line}")
    return failures


def _partners(name: str, path: Path, photos: list[Path], passed_over: list[str]) -> list[Path]:
    """The one picture given for all photos, or all pictures of a folder; notes those that no photo belongs to."""
    if not _existing(path).is_dir():
        return [path]
    found = _pictures_in(path, passed_over)
    stems = {photo.stem for photo in photos}
    passed_over += [f"{partner}: no photo is named {partner.stem}" for partner in found if partner.stem not in stems]
    return found


def _partner(name: str, given: Path, photo: Path, group: list[Path]) -> Path:
    """A photo's own mask or reference out of those that :func:`_partners` found."""
    if not given.is_dir():
        return group[0]
    found = [partner for partner in group if partner.stem == photo.stem]
    if len(found) != 1:
        raise UsageError(f"{photo}: needs one {name} named {photo.stem} in {given}, found {len(found) or 'none'}")
    return found[0]


def _existing(path: Path) -> Path:
    if not path.exists():
        raise UsageError(f"{path}: no such file or folder")
    return path


def _pictures_in(folder: Path, passed_over: list[str]) -> list[Path]:
    """Pictures of a folder; notes why each of the other files is not one."""
    pictures = []
    for path in sorted(folder.iterdir()):
        if reason := _not_a_picture(path):
            passed_over.append(f"{path}: {reason}")
        else:
            pictures.append(path)
    if not pictures:
        raise UsageError(f"{folder} has no pictures: their names end in {', '.join(READ_SUFFIXES)}")
    return pictures


def _not_a_picture(path: Path) -> str:
    """Reason why a file of a folder is not used, or an empty string."""
    if path.is_dir():
        return "a folder"
    if path.name.startswith("."):
        return "hidden"
    return "" if path.suffix.lower() in READ_SUFFIXES else "not the name of a picture"


def _output(photo: Path, given: str, many: bool, suffix: str | None = None) -> Path:
    """File to write for a photo: the given one, or one in the given folder, with the suffix if there is one."""
    out = Path(given)
    named_folder = given.endswith(FOLDER_ENDS) or not out.suffix
    if (many or named_folder) and out.exists() and not out.is_dir():
        why = f"{photo.parent} is a folder" if many else f"{given} is the name of a folder"
        raise UsageError(f"{out} is a file, but {why}: give a folder to write to")
    if many and not named_folder and not out.is_dir() and out.suffix.lower() in (*READ_SUFFIXES, suffix):
        raise UsageError(f"{out} is a picture's name, but {photo.parent} is a folder: give a folder to write to")
    if many or named_folder or out.is_dir():
        own = photo.suffix if photo.suffix.lower() in FORMAT_BY_SUFFIX else ".png"
        return out / f"{photo.stem}{suffix or own}"
    if suffix == SHIFT_MAP_SUFFIX:
        if out.suffix.lower() != suffix:
            raise UsageError(f"{out} cannot be written: let the name of a shift map end in {suffix}")
        return out
    try:
        output_format(out)
    except ValueError as error:
        raise UsageError(f"{error}, or give a folder, with a trailing slash if it is new") from None
    return out


def _without_existing(jobs: list[Job]) -> Plan:
    """Jobs that are left if no file may be replaced."""
    left: list[Job] = []
    failures: list[str] = []
    passed_over: list[str] = []
    for job in jobs:
        existing = [path for path in job.extras.values() if path.exists()]
        missing = {name: path for name, path in job.extras.items() if path not in existing}
        if job.out.exists():
            variant = next((path for name, path in missing.items() if name.startswith(VARIANT)), None)
            if variant:  # the order of variants depends on their count
                failures.append(
                    f"{job.photo}: {job.out} exists, but {variant} does not: add --overwrite to write all again"
                )
            elif missing:
                left.append(replace(job, extras=missing, keeps_out=True))
            else:
                passed_over.append(f"{job.photo}: {job.out} exists")
        elif existing:
            failures.append(f"{job.photo}: {existing[0]} exists, but {job.out} does not: add --overwrite to replace it")
        else:
            left.append(job)
    return Plan(left, len(passed_over), failures, passed_over)


def _outputs(job: Job) -> Iterator[Path]:
    if not job.keeps_out:
        yield job.out
    yield from job.extras.values()


def _check_outputs(jobs: list[Job]) -> None:
    """Check that no input is overwritten, and that no two files have one name."""
    inputs = {_identity(path) for job in jobs for path in (job.photo, *job.partners.values())}
    written: dict[str, Path] = {}  # photo by the real path of each output, as one file can have several
    for job in jobs:
        for path in _outputs(job):
            if path.exists() and _identity(path) in inputs:
                raise UsageError(f"{path} is an input and would be overwritten: choose another name or folder")
            other = written.setdefault(os.path.realpath(path), job.photo)
            if other is not job.photo:
                raise UsageError(f"{other} and {job.photo} would both be written to {path}: rename one of them")
            if path.is_dir():
                raise UsageError(f"{path} is a folder: choose another name")
        outputs = [os.path.realpath(path) for path in _outputs(job)]
        if len(set(outputs)) < len(outputs):
            raise UsageError(f"{job.out} would be written {len(outputs)} times: choose another name")


def _identity(path: Path) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_dev, status.st_ino
