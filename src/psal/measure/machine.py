"""Machine, versions and command of a measurement."""

import os
import platform
import shlex
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from psal.version import __version__

PACKAGES = ("torch", "numpy", "pillow")


def metadata(command: str, packages: Sequence[str] = PACKAGES) -> dict[str, Any]:
    """Date, command, commit, machine and versions of a run, for a record.

    Args:
        command: the command as a reader would type it; see :func:`command_line`.
        packages: distribution names of the packages whose versions matter.
    """
    return {
        "date": now(),
        "command": command,
        "commit": commit(),
        "machine": platform.machine(),
        "system": f"{platform.system()} {platform.release()}",
        "cpu": _cpu_model(),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        "python": platform.python_version(),
        "versions": {"psal": __version__} | {name: _version(name) for name in packages},
    }


def command_line(program: str, arguments: Sequence[str]) -> str:
    """A command as text for a record that others read.

    Paths outside the working folder are private to a machine: of those, only the last part is kept.

    >>> command_line("psal", ["bench", "memory", "--data", "../somewhere/DAVIS", "--out", "results"])
    'psal bench memory --data folder/DAVIS --out results'
    """
    return f"{program} {shlex.join(map(_without_private_folders, arguments))}".strip()


def _without_private_folders(argument: str) -> str:
    option, equals, value = argument.rpartition("=")
    path = Path(value)
    is_private = path.is_absolute() or ".." in path.parts
    return f"{option}{equals}folder/{path.resolve().name}" if is_private else argument


def now() -> str:
    """Current date and time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def commit() -> str:
    """Commit of the source that is running, with ``+`` if its repository has uncommitted changes.

    "unknown" if psal does not run from a repository.
    """
    folder = Path(__file__).parent
    try:
        _git(folder, "ls-files", "--error-unmatch", Path(__file__).name)  # an installed copy may lie in any repository
        return _git(folder, "rev-parse", "HEAD") + ("+" if _git(folder, "status", "--porcelain") else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _git(folder: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=True).stdout.strip()


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
