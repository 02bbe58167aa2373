"""Checkpoints of a training run, written atomically."""

import io
from pathlib import Path
from typing import Any

import torch

from psal.errors import UsageError
from psal.io.atomic import write_atomically

FILE = "checkpoint.pt"
KEYS = {"step", "settings", "model", "average", "optimizer", "seconds", "since_row", "loss", "complaints"}


def save(folder: Path, state: dict[str, Any]) -> None:
    """Write the state, replacing the last one."""
    buffer = io.BytesIO()
    torch.save(state, buffer)
    write_atomically(folder / FILE, buffer.getvalue())


def load(folder: Path) -> dict[str, Any] | None:
    """Read the state, or return None if there is no checkpoint.

    Raises:
        OSError: if the file cannot be read.
        UsageError: if it is not a checkpoint, or one of another version.
    """
    path = folder / FILE
    if not path.exists():
        return None
    content = io.BytesIO(path.read_bytes())
    try:
        state = torch.load(content, map_location="cpu", weights_only=True)
        missing = KEYS - state.keys()
    except MemoryError:
        raise
    except Exception:  # unpickling arbitrary bytes raises errors of any kind
        raise UsageError(f"{path} is not a checkpoint: choose another folder") from None
    if missing:
        raise UsageError(f"{path} is of another version: it lacks {', '.join(sorted(missing))}; choose another folder")
    return dict(state)
