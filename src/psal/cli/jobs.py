"""Which files an editing run reads and writes, and going through them: on after a bad one, past those that are done."""

import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from psal.errors import UsageError, describe
from psal.io.atomic import check_folder_is_writable
from psal.io.formats import FORMAT_BY_SUFFIX, READ_SUFFIXES, output_format

FOLDER_ENDS = tuple(end for end in (os.sep, os.altsep) if end)  # pathlib drops them


@dataclass(frozen=True)
class Job:
    """One picture to edit.

    Attributes:
        photo: to read.
        partner: the mask or reference to read, if the editing takes one.
        out: to write.
        extras: further files to write, by name ("compare", "shifts").
        keeps_out: ``out`` was written before and stays; only the extras are missing.
    """

    photo: Path
    partner: Path | None
    out: Path
    extras: dict[str, Path] = field(default_factory=dict)
    keeps_out: bool = False


@dataclass(frozen=True)
class Plan:
    """What there is to do.

    Attributes:
        jobs: those still to be done.
        skipped: how many were done before, with all that they write.
        failures: a line for each photo that cannot be done.
    """

    jobs: list[Job]
    skipped: int
    failures: list[str]


def plan_jobs(
    photo: Path,
    partner: Path | None,
    out: str,
    *,
    partner_name: str = "reference",
    shifts: str | None = None,
    compare: bool = False,
    overwrite: bool = False,
) -> Plan:
    """Pair photos with masks or references and with the files to write.

    Args:
        photo: a picture, or a folder of them.
        partner: one mask or reference for all photos, a folder that has one of the same stem for each, or None.
        out: a file to write, or a folder; a folder of photos needs a folder, which is made. With a slash at its end
            it is a folder in any case.
        partner_name: what messages call the partner.
        shifts: a file for the shifts, or a folder, where they become PNGs.
        compare: write before and after side by side too, beside ``out`` with "_compare" after its stem.
        overwrite: do again what is done. Without it nothing is replaced: for a single photo, a file that is there is
            an error; of a folder's photos, those that have all their files are skipped, those that lack an extra get
            that alone, and an extra without its picture is a failure.

    Returns:
        :class:`Plan`

    Raises:
        UsageError: if the paths do not fit together.
        OSError: if the folders cannot be written to.
    """
    many = photo.is_dir()
    photos = _pictures_in(photo) if many else [_existing(photo)]
    partners = _pictures_in(partner) if partner is not None and _existing(partner).is_dir() else None
    jobs: list[Job] = []
    failures: list[str] = []
    for path in photos:
        found = partner
        if partners is not None:
            candidates = [other for other in partners if other.stem == path.stem]
            if len(candidates) != 1:
                what = "none" if not candidates else f"{len(candidates)}"
                wanted = f"{path}: needs one {partner_name} named {path.stem} in {partner}, which has {what}"
                if not many:
                    raise UsageError(wanted)
                failures.append(wanted)
                continue
            found = candidates[0]
        target = _output(path, out, many)
        extras = {}
        if shifts is not None:
            extras["shifts"] = _output(path, shifts, many, suffix=".png")  # JPEG would blur the colours' meaning
        if compare:
            extras["compare"] = target.with_name(f"{target.stem}_compare.png")
        jobs.append(Job(path, found, target, extras))
    _check_outputs(jobs)
    if not many and not overwrite:
        for written in _written(jobs[0]):
            if written.exists():
                raise UsageError(f"{written} is there already: add --overwrite to replace it, or choose another name")
    plan = Plan(jobs, 0, []) if overwrite else _without_what_is_done(jobs)
    for folder in {written.parent for job in plan.jobs for written in _written(job)}:
        check_folder_is_writable(folder)
    return replace(plan, failures=failures + plan.failures)


def run_jobs(jobs: list[Job], work: Callable[[int, Job], None]) -> list[str]:
    """Do the jobs one after the other.

    Args:
        jobs: from :func:`plan_jobs`.
        work: reads, edits and writes one, given its number and itself; it writes ``out`` first, so that a run that
            was stopped goes on: an extra that is missing beside it is made, one without it would be in the way.

    Returns:
        A line for each job that failed.
    """
    failures = []
    for number, job in enumerate(jobs):
        try:
            work(number, job)
        except ImportError:
            raise
        except Exception as error:  # whatever is wrong with one picture, the others still get their turn
            line = describe(error)
            failures.append(line if line.startswith(str(job.photo)) else f"{job.photo}: {line}")
    return failures


def _existing(path: Path) -> Path:
    if not path.exists():
        raise UsageError(f"{path}: there is no such file or folder")
    return path


def _pictures_in(folder: Path) -> list[Path]:
    pictures = [
        path
        for path in sorted(folder.iterdir())
        if path.suffix.lower() in READ_SUFFIXES and not path.name.startswith(".") and not path.is_dir()
    ]
    if not pictures:
        raise UsageError(f"{folder} has no pictures in it: they end in {', '.join(READ_SUFFIXES)}")
    return pictures


def _output(photo: Path, given: str, many: bool, suffix: str | None = None) -> Path:
    """The file to write for a photo: the given one, or one in the given folder, with the suffix if there is one."""
    out = Path(given)
    named_folder = given.endswith(FOLDER_ENDS)
    if (many or named_folder) and out.exists() and not out.is_dir():
        why = f"{photo.parent} a folder" if many else "the slash at its end says folder"
        raise UsageError(f"{out} is a file, and {why}: give a folder to write to")
    if many and not named_folder and not out.is_dir() and out.suffix.lower() in READ_SUFFIXES:
        raise UsageError(f"{out} is the name of a picture, and {photo.parent} a folder: give a folder to write to")
    if many or named_folder or out.is_dir():
        kept = photo.suffix if photo.suffix.lower() in FORMAT_BY_SUFFIX else ".png"
        return out / f"{photo.stem}{suffix or kept}"
    try:
        output_format(out)
    except ValueError as error:
        raise UsageError(f"{error}, or give a folder, with a slash at its end if it is new") from None
    return out


def _without_what_is_done(jobs: list[Job]) -> Plan:
    """What can be done without writing over a file."""
    left: list[Job] = []
    failures: list[str] = []
    for job in jobs:
        there = [path for path in job.extras.values() if path.exists()]
        missing = {name: path for name, path in job.extras.items() if path not in there}
        if job.out.exists():
            left += [replace(job, extras=missing, keeps_out=True)] if missing else []
        elif there:
            failures.append(
                f"{job.photo}: {there[0]} is there already, but {job.out} is not: add --overwrite to replace it"
            )
        else:
            left.append(job)
    return Plan(left, len(jobs) - len(left) - len(failures), failures)


def _written(job: Job) -> Iterator[Path]:
    if not job.keeps_out:
        yield job.out
    yield from job.extras.values()


def _check_outputs(jobs: list[Job]) -> None:
    inputs = {_identity(path) for job in jobs for path in (job.photo, job.partner) if path is not None}
    outputs = [path for job in jobs for path in _written(job)]
    times = Counter(map(os.path.realpath, outputs))  # one file can be spelled in many ways
    for path in outputs:
        if path.exists() and _identity(path) in inputs:
            raise UsageError(f"{path} would be written over what is read: choose another name or folder")
        if (count := times[os.path.realpath(path)]) > 1:
            raise UsageError(f"{path} would be written {count} times: rename a picture, or choose another folder")
        if path.is_dir():
            raise UsageError(f"{path} is a folder: choose another name")


def _identity(path: Path) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_dev, status.st_ino
