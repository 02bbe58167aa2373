"""A training run's state on disk, whole or not at all."""

import io
from pathlib import Path
from typing import Any

import torch

from psal.errors import UsageError
from psal.whole_files import write_whole

FILE = "checkpoint.pt"


def save(folder: Path, state: dict[str, Any]) -> None:
    """Write the state in place of the last one."""
    buffer = io.BytesIO()
    torch.save(state, buffer)
    write_whole(folder / FILE, buffer.getvalue())


def load(folder: Path) -> dict[str, Any] | None:
    """The state, or None if there is none.

    Raises:
        UsageError: if the file is not a checkpoint.
    """
    path = folder / FILE
    if not path.exists():
        return None
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
        if {"step", "settings", "model", "average", "optimizer"} <= state.keys():
            return dict(state)
    except Exception as error:  # whatever is in the file, the message is the same
        raise UsageError(f"{path} is not a checkpoint ({error}): choose another folder, or remove it") from None
    raise UsageError(f"{path} is not a checkpoint of this project: choose another folder, or remove it")
