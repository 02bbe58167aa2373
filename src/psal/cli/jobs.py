"""Jobs of an edit command: which files to read and write, for one photo or a folder of them."""

import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from psal.errors import UsageError
from psal.io.atomic import check_folder_is_writable
from psal.io.formats import FORMAT_BY_SUFFIX, READ_SUFFIXES, output_format
from psal.messages import describe

FOLDER_ENDS = tuple(end for end in (os.sep, os.altsep) if end)  # pathlib drops a trailing one


@dataclass(frozen=True)
class Paths:
    """Paths as the user gave them.

    Attributes:
        photo: a picture, or a folder of them.
        partner: one mask or reference for all photos, a folder with one of the same stem for each, or None.
        out: file or folder to write to; a folder of photos needs a folder, which is created. A trailing slash makes
            it a folder in any case.
        partner_name: "mask" or "reference", for messages.
        shifts: file or folder for the shifts, or None; in a folder they become PNGs.
        compare: also write before and after side by side, beside ``out``, with "_compare" after its stem.
        overwrite: replace existing files. Without it, an existing file is an error for a single photo. In a folder,
            photos with all their outputs are skipped, and for the others only missing outputs are written.
    """

    photo: Path
    partner: Path | None
    out: str
    partner_name: str = "reference"
    shifts: str | None = None
    compare: bool = False
    overwrite: bool = False


@dataclass(frozen=True)
class Job:
    """One photo to edit.

    Attributes:
        photo: file to read.
        partner: mask or reference to read, if the edit takes one.
        out: file to write.
        extras: further files to write, by name ("compare", "shifts").
        keeps_out: ``out`` exists and is kept; only the extras are missing.
    """

    photo: Path
    partner: Path | None
    out: Path
    extras: dict[str, Path] = field(default_factory=dict)
    keeps_out: bool = False


@dataclass(frozen=True)
class Plan:
    """All jobs of a command.

    Attributes:
        jobs: jobs to run.
        skipped: how many photos have all their outputs.
        failures: one line for each photo that cannot be edited.
    """

    jobs: list[Job]
    skipped: int
    failures: list[str]


def plan_jobs(paths: Paths) -> Plan:
    """Pair photos with masks or references and with the files to write.

    Raises:
        UsageError: if the paths do not fit together.
        OSError: if a folder cannot be written to.
    """
    many = paths.photo.is_dir()
    photos = _pictures_in(paths.photo) if many else [_existing(paths.photo)]
    jobs: list[Job] = []
    failures: list[str] = []
    for photo, partner in _paired(photos, paths):
        if isinstance(partner, UsageError):
            if not many:
                raise partner
            failures.append(str(partner))
            continue
        out = _output(photo, paths.out, many)
        extras = {}
        if paths.shifts is not None:
            extras["shifts"] = _output(photo, paths.shifts, many, suffix=".png")  # JPEG would alter the coded colors
        if paths.compare:
            extras["compare"] = out.with_name(f"{out.stem}_compare.png")
        jobs.append(Job(photo, partner, out, extras))
    _check_outputs(jobs)
    if not many and not paths.overwrite:
        for output in _outputs(jobs[0]):
            if output.exists():
                raise UsageError(f"{output} exists: add --overwrite to replace it, or choose another name")
    plan = Plan(jobs, 0, []) if paths.overwrite else _without_existing(jobs)
    for folder in {output.parent for job in plan.jobs for output in _outputs(job)}:
        check_folder_is_writable(folder)
    return replace(plan, failures=failures + plan.failures)


def run_jobs(jobs: list[Job], work: Callable[[int, Job], None]) -> list[str]:
    """Run jobs one after the other; a failed one does not stop the rest.

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
        except Exception as error:  # whatever is wrong with one photo, the others are still edited
            line = describe(error)
            failures.append(line if line.startswith(str(job.photo)) else f"{job.photo}: {line}")
    return failures


def _paired(photos: list[Path], paths: Paths) -> Iterator[tuple[Path, Path | UsageError | None]]:
    """Each photo with its mask or reference, or with the error that says why it has none."""
    if paths.partner is None or not _existing(paths.partner).is_dir():
        yield from ((photo, paths.partner) for photo in photos)
        return
    partners = _pictures_in(paths.partner)
    for photo in photos:
        found = [partner for partner in partners if partner.stem == photo.stem]
        if len(found) == 1:
            yield photo, found[0]
        else:
            count = len(found) or "none"
            wanted = f"{photo}: needs one {paths.partner_name} named {photo.stem} in {paths.partner}, found {count}"
            yield photo, UsageError(wanted)


def _existing(path: Path) -> Path:
    if not path.exists():
        raise UsageError(f"{path}: no such file or folder")
    return path


def _pictures_in(folder: Path) -> list[Path]:
    pictures = [
        path
        for path in sorted(folder.iterdir())
        if path.suffix.lower() in READ_SUFFIXES and not path.name.startswith(".") and not path.is_dir()
    ]
    if not pictures:
        raise UsageError(f"{folder} has no pictures: their names end in {', '.join(READ_SUFFIXES)}")
    return pictures


def _output(photo: Path, given: str, many: bool, suffix: str | None = None) -> Path:
    """File to write for a photo: the given one, or one in the given folder, with the suffix if there is one."""
    out = Path(given)
    named_folder = given.endswith(FOLDER_ENDS)
    if (many or named_folder) and out.exists() and not out.is_dir():
        why = f"{photo.parent} is a folder" if many else "the trailing slash asks for a folder"
        raise UsageError(f"{out} is a file, but {why}: give a folder to write to")
    if many and not named_folder and not out.is_dir() and out.suffix.lower() in READ_SUFFIXES:
        raise UsageError(f"{out} is a picture's name, but {photo.parent} is a folder: give a folder to write to")
    if many or named_folder or out.is_dir():
        own = photo.suffix if photo.suffix.lower() in FORMAT_BY_SUFFIX else ".png"
        return out / f"{photo.stem}{suffix or own}"
    try:
        output_format(out)
    except ValueError as error:
        raise UsageError(f"{error}, or give a folder, with a trailing slash if it is new") from None
    return out


def _without_existing(jobs: list[Job]) -> Plan:
    """Jobs that are left if no file may be replaced."""
    left: list[Job] = []
    failures: list[str] = []
    for job in jobs:
        existing = [path for path in job.extras.values() if path.exists()]
        missing = {name: path for name, path in job.extras.items() if path not in existing}
        if job.out.exists():
            left += [replace(job, extras=missing, keeps_out=True)] if missing else []
        elif existing:
            failures.append(f"{job.photo}: {existing[0]} exists, but {job.out} does not: add --overwrite to replace it")
        else:
            left.append(job)
    return Plan(left, len(jobs) - len(left) - len(failures), failures)


def _outputs(job: Job) -> Iterator[Path]:
    if not job.keeps_out:
        yield job.out
    yield from job.extras.values()


def _check_outputs(jobs: list[Job]) -> None:
    inputs = {_identity(path) for job in jobs for path in (job.photo, job.partner) if path is not None}
    outputs = [path for job in jobs for path in _outputs(job)]
    times = Counter(map(os.path.realpath, outputs))  # one file can have several paths
    for path in outputs:
        if path.exists() and _identity(path) in inputs:
            raise UsageError(f"{path} is an input and would be overwritten: choose another name or folder")
        if (count := times[os.path.realpath(path)]) > 1:
            raise UsageError(f"{path} would be written {count} times: rename a picture, or choose another folder")
        if path.is_dir():
            raise UsageError(f"{path} is a folder: choose another name")


def _identity(path: Path) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_dev, status.st_ino
