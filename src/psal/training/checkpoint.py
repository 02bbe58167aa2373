"""A training run's state on disk, whole or not at all."""

import io
from pathlib import Path
from typing import Any

import torch

from psal.errors import UsageError
from psal.io.atomic import write_atomically

FILE = "checkpoint.pt"
KEPT = {"step", "settings", "model", "average", "optimizer", "seconds", "since_row", "loss", "complaints"}


def save(folder: Path, state: dict[str, Any]) -> None:
    """Write the state in place of the last one."""
    buffer = io.BytesIO()
    torch.save(state, buffer)
    write_atomically(folder / FILE, buffer.getvalue())


def load(folder: Path) -> dict[str, Any] | None:
    """The state, or None if there is none.

    Raises:
        OSError: if the file cannot be read.
        UsageError: if it is not a checkpoint.
    """
    path = folder / FILE
    if not path.exists():
        return None
    content = io.BytesIO(path.read_bytes())
    try:
        state = torch.load(content, map_location="cpu", weights_only=True)
        missing = KEPT - state.keys()
    except MemoryError:
        raise
    except Exception:  # whatever is in the file, the message is the same
        raise UsageError(f"{path} is not a checkpoint: choose another folder") from None
    if missing:
        raise UsageError(f"{path} is of another version, without {', '.join(sorted(missing))}: choose another folder")
    return dict(state)
