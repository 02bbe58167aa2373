"""What has been measured, on disk as soon as it is, so that a run goes on where the last one stopped."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from psal.errors import UsageError
from psal.io.atomic import check_folder_is_writable, write_atomically
from psal.measure.machine import commit, now

Cell = dict[str, Any]


class Record:
    """A JSON file with metadata, settings and cells by name.

    Args:
        path: of the file; its folder is made.
        settings: what all cells share; a file with other ones is not continued.
        metadata: of this run.
        overwrite: measure again what is there.

    Raises:
        UsageError: if the file has other settings, or is not such a file.
        OSError: if the folder cannot be written to.
    """

    def __init__(self, path: Path, settings: dict[str, Any], metadata: dict[str, Any], overwrite: bool = False) -> None:
        check_folder_is_writable(path.parent)
        self.path = path
        self.metadata = metadata
        self.settings: dict[str, Any] = json.loads(json.dumps(settings))
        self.cells: dict[str, Cell] = {}
        self._commit = commit()
        if path.exists() and not overwrite:
            before = _read(path)
            if before["settings"] != self.settings:
                differ = [name for name in self.settings if before["settings"].get(name) != self.settings[name]]
                raise UsageError(
                    f"{path} was measured with other settings ({', '.join(differ) or 'more of them'}): "
                    "add --overwrite to measure anew, or choose another folder"
                )
            self.cells = before["cells"]
            self.metadata = before["metadata"]

    def __contains__(self, name: str) -> bool:
        return name in self.cells

    def keep(self, name: str, measure: Callable[[], Cell]) -> Cell:
        """The cell of that name, measured now if it has not been."""
        if name not in self.cells:
            self.cells[name] = measure() | {"date": now(), "commit": self._commit}
            self.save()
        return self.cells[name]

    def save(self) -> None:
        """Write all of it."""
        content = {"metadata": self.metadata, "settings": self.settings, "cells": self.cells}
        write_atomically(self.path, (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode())


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text())
        if {"metadata", "settings", "cells"} <= found.keys():
            return dict(found)
    except (OSError, ValueError, AttributeError):
        pass
    raise UsageError(f"{path} is not what this command writes: add --overwrite to replace it, or choose another folder")
