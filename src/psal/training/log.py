"""Log of a run's losses: as CSV, and for TensorBoard if that is installed."""

import csv
import io
from pathlib import Path
from types import TracebackType
from typing import Any

from psal.io.atomic import write_atomically

FILE = "log.csv"
HEADER = ["step", "loss", "seconds"]


class Log:
    """Rows of step, mean loss since the last row, and seconds of training so far.

    Args:
        folder: folder of the run.
        step: step from which the run resumes; rows after it, logged between the checkpoint and the interruption, are
            dropped.
    """

    def __init__(self, folder: Path, step: int) -> None:
        self._path = folder / FILE
        self._drop_from(step)
        self._board = _board(folder, step)

    def add(self, step: int, loss: float, seconds: float) -> None:
        """Append a row after ``step`` steps."""
        with self._path.open("a", newline="") as file:
            csv.writer(file).writerow([step, f"{loss:.6g}", f"{seconds:.1f}"])
        if self._board is not None:
            self._board.add_scalar("loss", loss, step)
            self._board.flush()

    def __enter__(self) -> "Log":
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        if self._board is not None:
            self._board.close()

    def _drop_from(self, step: int) -> None:
        rows = list(csv.reader(self._path.read_text().splitlines()))[1:] if self._path.exists() and step else []
        buffer = io.StringIO()
        csv.writer(buffer).writerows([HEADER, *(row for row in rows if _is_whole(row) and int(row[0]) <= step)])
        write_atomically(self._path, buffer.getvalue().encode())


def _is_whole(row: list[str]) -> bool:
    """Return False for the last row of an interrupted run if it was cut off."""
    return len(row) == len(HEADER) and row[0].isdigit()


def _board(folder: Path, step: int) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    return SummaryWriter(str(folder / "tensorboard"), purge_step=step + 1)  # drops steps that are repeated
