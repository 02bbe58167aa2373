"""What a worker process runs: ``python -m psal.app.worker <file descriptor>``."""

import json
import os
import re
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from psal.app.storage import DISK_FULL, is_disk_full
from psal.app.workers import ignore_interrupts
from psal.messages import describe

MIN_STEP = 0.01  # of the progress that is worth a message


def main() -> None:
    """Run tasks until nobody asks for one any more."""
    ignore_interrupts()
    with Connection(int(sys.argv[1])) as pipe:
        from psal.app import tasks

        tasks.warm_up()
        while True:
            try:
                message = json.loads(pipe.recv_bytes())
            except EOFError:
                return
            pipe.send_bytes(json.dumps({"begun": True}).encode())  # from here on it is not tried again
            pipe.send_bytes(json.dumps(_answer(tasks, message, pipe)).encode())


def _answer(tasks: Any, message: dict[str, Any], pipe: Connection) -> dict[str, Any]:
    try:
        return {"done": getattr(tasks, message["task"])(**message["arguments"], progress=_reporter(pipe))}
    except BrokenPipeError:  # whoever asked has left
        raise
    except Exception as error:  # whatever it is, the session gets a sentence, and the process goes on
        return {"failed": DISK_FULL if is_disk_full(error) else _without_folders(describe(error))}


def _reporter(pipe: Connection) -> Callable[[float], None]:
    last = 0.0

    def report(share: float) -> None:
        nonlocal last
        if share - last >= MIN_STEP:
            last = share
            pipe.send_bytes(json.dumps({"progress": share}).encode())

    return report


def _without_folders(line: str) -> str:
    """A message that names files, not where this machine keeps them.

    >>> _without_folders("/tmp/x-1/ab/my photo.png is damaged (see /etc/a)")
    'my photo.png is damaged (see a)'
    """
    return re.sub(rf"{re.escape(os.sep)}(?:[^\s{re.escape(os.sep)}]+{re.escape(os.sep)})+", "", line)


if __name__ == "__main__":
    main()
