"""Which file each layer of ``psal apply-shifts`` is written to."""

import os
from pathlib import Path

from psal.cli.jobs import FOLDER_ENDS
from psal.errors import UsageError
from psal.io.atomic import check_folder_is_writable
from psal.io.formats import FORMAT_BY_SUFFIX

SUFFIXES = (*FORMAT_BY_SUFFIX, ".npy")


def plan_layers(shifts: Path, layers: list[Path], out: str, overwrite: bool) -> list[tuple[Path, Path]]:
    """Pair each layer with the file to write.

    Args:
        shifts: the shift map.
        layers: files to read.
        out: file to write, for one layer; or a folder, if it exists, has no suffix or ends in a slash.
        overwrite: replace existing files.

    Raises:
        UsageError: if the paths do not fit together.
        OSError: if the folder cannot be written to.
    """
    for path in (shifts, *layers):
        if not path.is_file():
            raise UsageError(f"{path}: no such file")
    into_folder = out.endswith(FOLDER_ENDS) or not Path(out).suffix or Path(out).is_dir()
    if len(layers) > 1 and not into_folder:
        raise UsageError(f"{out} is a file's name, but there are {len(layers)} layers: give a folder to write to")
    jobs = [(layer, Path(out) / layer.name if into_folder else Path(out)) for layer in layers]
    inputs = {os.path.realpath(path) for path in (shifts, *layers)}
    written: dict[str, Path] = {}
    for layer, target in jobs:
        if target.suffix.lower() not in SUFFIXES:
            raise UsageError(f"{target} cannot be written: let its name end in {', '.join(SUFFIXES)}")
        if os.path.realpath(target) in inputs:
            raise UsageError(f"{target} is an input and would be overwritten: choose another name or folder")
        if (other := written.setdefault(os.path.realpath(target), layer)) is not layer:
            raise UsageError(f"{other} and {layer} would both be written to {target}: rename one of them")
        if target.exists() and not overwrite:
            raise UsageError(f"{target} exists: add --overwrite to replace it, or choose another name")
    for folder in {target.parent for _, target in jobs}:
        check_folder_is_writable(folder)
    return jobs
