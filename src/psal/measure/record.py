"""A results file: measurements as JSON, saved after each one, so that an interrupted run can be resumed."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from psal.errors import UsageError
from psal.io.atomic import check_folder_is_writable, write_atomically
from psal.measure.machine import now

Cell = dict[str, Any]

PER_RUN = ("date", "commit", "load")  # metadata that differs between runs of one command on one machine


@dataclass
class Record:
    """Contents of a results file.

    Attributes:
        path: the JSON file.
        settings: what all cells share.
        metadata: of the run that started the file; see :func:`psal.measure.machine.metadata`.
        cells: single measurements by name. Each has its date and commit, and its own ``metadata`` if a later run
            measured it on another machine, with other versions or by another command.
        run: metadata of the current run.
    """

    path: Path
    settings: dict[str, Any]
    metadata: dict[str, Any]
    cells: dict[str, Cell] = field(default_factory=dict)
    run: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> "Record":
        """Read a results file.

        Raises:
            ValueError: if it is not a results file.
            OSError: if it cannot be read.
        """
        content = json.loads(path.read_text())
        if (
            not isinstance(content, dict)
            or content.keys() != {"metadata", "settings", "cells"}
            or not all(isinstance(part, dict) for part in content.values())
        ):
            raise ValueError(f"{path} is not a results file: expected metadata, settings and cells")
        return cls(path, content["settings"], content["metadata"], content["cells"])

    @classmethod
    def resume(
        cls, path: Path, settings: dict[str, Any], metadata: dict[str, Any], overwrite: bool = False
    ) -> "Record":
        """Continue a results file, or start one.

        Args:
            path: the JSON file; its folder is created.
            settings: what all cells share; a file with other settings is refused.
            metadata: of this run.
            overwrite: discard the cells that the file holds.

        Raises:
            UsageError: if the file has other settings, or is not a results file.
            OSError: if the folder is not writable.
        """
        check_folder_is_writable(path.parent)
        settings = json.loads(json.dumps(settings))
        if overwrite or not path.exists():
            return cls(path, settings, metadata, run=metadata)
        try:
            record = cls.read(path)
        except (OSError, ValueError):
            raise UsageError(
                f"{path} is not a results file of this command: add --overwrite to replace it, or choose another folder"
            ) from None
        if record.settings != settings:
            differing = [name for name in settings if record.settings.get(name) != settings[name]]
            raise UsageError(
                f"{path} was measured with other settings ({', '.join(differing) or 'additional ones'}): "
                "add --overwrite to measure again, or choose another folder"
            )
        record.run = metadata
        return record

    def measure_once(self, name: str, measure: Callable[[], Cell]) -> Cell:
        """Return the cell of that name; if it is missing, measure it and save the file first."""
        if name not in self.cells:
            cell = measure() | {"date": now(), "commit": self.run.get("commit")}
            if _lasting(self.run) != _lasting(self.metadata):
                cell["metadata"] = self.run
            self.cells[name] = cell
            self.save()
        return self.cells[name]

    def save(self) -> None:
        """Write the file."""
        content = {"metadata": self.metadata, "settings": self.settings, "cells": self.cells}
        write_atomically(self.path, (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode())


def _lasting(metadata: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in metadata.items() if name not in PER_RUN}
