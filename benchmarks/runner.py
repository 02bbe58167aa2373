"""The command line that all benchmarks share: measure groups of quantities into one record, and show them."""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from psal.errors import UsageError
from psal.measure.comparison import benchmark_tables
from psal.measure.machine import metadata
from psal.measure.record import Cell, Record
from psal.measure.terminal import show

Group = Callable[[], Cell]

MAX_IDLE_LOAD = 0.5  # above this load average, timings are not reliable
QUICK_FOLDER = Path("build")


@dataclass(frozen=True)
class Benchmark:
    """A benchmark's name and description.

    Attributes:
        name: module in this package, and name of its results file.
        description: first line of ``--help``.
        groups: names of the groups of quantities, in the order of the table; "part/name" for those of one part, which
            can be measured together.
        packages: distribution names of the packages whose versions matter.
        data: description of ``--data``; None if it needs no data.
    """

    name: str
    description: str
    groups: Sequence[str]
    packages: Sequence[str]
    data: str | None = None

    def parser(self) -> argparse.ArgumentParser:
        """Options ``--data``, ``--out``, ``--rows``, ``--overwrite``, ``--quick`` and ``--threads``."""
        parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{self.name}", description=self.description)
        if self.data:
            parser.add_argument("--data", type=Path, required=True, help=self.data.replace("%", "%%"))
        parser.add_argument("--out", type=Path, help="folder of the JSON file [results; build with --quick]")
        parser.add_argument("--rows", nargs="+", choices=self._words(), metavar="ROW", help=self._help())
        parser.add_argument("--overwrite", action="store_true", help="measure everything again")
        parser.add_argument(
            "--quick", action="store_true", help="smoke test with tiny inputs; its numbers mean nothing"
        )
        parser.add_argument("--threads", type=int, default=2, help="number of CPU threads [2]")
        return parser

    def measure(self, arguments: argparse.Namespace, settings: dict[str, Any], groups: Mapping[str, Group]) -> None:
        """Measure the groups that the results file lacks, or that were asked for, and print the table.

        Args:
            arguments: of :meth:`parser`.
            settings: what all groups share.
            groups: functions that measure a group, by name.
        """
        about = metadata(self._command(arguments), self.packages)
        if about["load"] is not None and about["load"] > MAX_IDLE_LOAD:
            print(f"warning: the machine is busy (load {about['load']:.1f}): times are not reliable", file=sys.stderr)
        torch.set_num_threads(arguments.threads)
        folder = arguments.out or (QUICK_FOLDER if arguments.quick else Path("results"))
        try:
            record = Record.resume(folder / f"{self.name}.json", settings, about, arguments.overwrite)
            for name in self._selected(arguments.rows):
                if arguments.rows:
                    record.cells.pop(name, None)
                print(f"measuring: {name}", file=sys.stderr, flush=True)
                record.measure_once(name, groups[name])
        except (UsageError, FileNotFoundError) as error:
            sys.exit(f"error: {error}")
        record.cells = {name: record.cells[name] for name in self.groups if name in record.cells}
        record.save()
        show(record, benchmark_tables(record))
        print(f"written to {record.path}", file=sys.stderr)

    def _words(self) -> list[str]:
        """What ``--rows`` takes: parts and groups."""
        return list(dict.fromkeys([*(name.partition("/")[0] for name in self.groups), *self.groups]))

    def _help(self) -> str:
        parts = ", ".join(word for word in self._words() if "/" not in word)
        return f"measure these again, and no others: {parts}, or a single PART/NAME"

    def _selected(self, rows: Sequence[str] | None) -> list[str]:
        return [name for name in self.groups if not rows or name in rows or name.partition("/")[0] in rows]

    def _command(self, arguments: argparse.Namespace) -> str:
        """The command as a reader would type it; the data folder is private to this machine."""
        words = ["python", "-m", f"benchmarks.{self.name}"]
        words += ["--data", "folder"] if self.data else []
        words += ["--rows", *arguments.rows] if arguments.rows else []
        words += ["--quick"] if arguments.quick else []
        return " ".join(words)
