"""Count the deliberate faults that the tests notice: ``python -m benchmarks.mutants io layer``

Each mutant is a copy of the project with one operator or constant changed. Its tests run until one fails. The changed
places are a random sample, always the same one, so the share that is noticed is an estimate. results/mutants.json gets
every mutant; the command prints those that no test noticed. Before, an unchanged copy is tested: if that fails, no
failure of a mutant means anything.
"""

import argparse
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.forked_tests import HANGS, ForkedTests, Run
from benchmarks.kernel_build import ROOT, BuildError, build, copy_sources
from benchmarks.mutations import Mutation, Place, cpp_places, python_places
from psal.measure.machine import command_line, metadata
from psal.measure.record import Cell, Record
from psal.measure.terminal import track

COMPILER = "the compiler"
LAYER_SOURCES = ("functional", "options", "swap", "ops/*")
LAYER_TESTS = ("ops", "functional", *(f"test_{name}.py" for name in (
    "checks", "options", "matches", "layers", "seeds", "swap", "tokens", "compile", "public_api")))  # fmt: skip
# Of the kernels, one instruction set alone is built: these tests would call the others. Triton's kernels are no target.
LEFT_OUT = ("ops/test_simd.py", "ops/triton")
OWN_ONLY = "test_processes.py"  # takes as long as all other tests of training: only for faults in processes.py


@dataclass(frozen=True)
class Target:
    """A part of the project: sources to change, and the tests that should notice.

    Attributes:
        count: size of the sample.
        sources: glob patterns, from the project's folder.
        tests: files and folders in tests.
        places: that can be changed in a file.
    """

    count: int
    sources: tuple[str, ...]
    tests: tuple[str, ...]
    places: Callable[[Path], Iterator[Place]]

    def draw(self, count: int) -> list[Mutation]:
        """Random mutations, each of another line. A larger sample contains every smaller one."""
        paths = sorted(path.relative_to(ROOT) for pattern in self.sources for path in ROOT.glob(pattern))
        places = [place for path in paths for place in self.places(path)]
        random.Random(0).shuffle(places)
        by_line = {(place.path, place.line): place for place in places}
        return [place.change() for place in list(by_line.values())[:count]]

    def test_files(self) -> list[str]:
        """Files of tests, from the project's folder."""
        found = [path for name in self.tests for path in ([ROOT / "tests" / name, *(ROOT / "tests" / name).rglob("*")])]
        names = sorted({str(path.relative_to(ROOT)) for path in found if path.match("test_*.py")})
        return [name for name in names if not any(name.startswith(f"tests/{left_out}") for left_out in LEFT_OUT)]


TARGETS = {
    "io": Target(
        25, ("src/psal/io/*.py",), ("io", "cli/test_apply_shifts.py", "editing/test_shift_map.py"), python_places
    ),
    "layer": Target(40, tuple(f"src/psal/{name}.py" for name in LAYER_SOURCES), LAYER_TESTS, python_places),
    "training": Target(25, ("src/psal/training/*.py",), ("training",), python_places),
    "kernels": Target(40, ("csrc/kernels/*-inl.h",), LAYER_TESTS, cpp_places),
}


class Workspace:
    """A copy of the project in which one mutant after the other is tested.

    Args:
        folder: where the copy is made.
        tests: runs them there.
        part: name of what is changed.
    """

    def __init__(self, folder: Path, tests: ForkedTests, part: str) -> None:
        self._folder, self._tests, self._part, self._target = folder, tests, part, TARGETS[part]
        ignored = shutil.ignore_patterns("__pycache__")
        for name in ("src", "tests", "docs", "benchmarks", "results"):
            shutil.copytree(ROOT / name, folder / name, ignore=ignored)
        for name in ("pyproject.toml", "README.md", "mkdocs.yml"):
            shutil.copy(ROOT / name, folder)
        copy_sources(folder)
        self._seconds = self._check_unchanged()

    def _check_unchanged(self) -> dict[str, float]:
        """Test the copy as it is; return the time of each file of tests.

        Raises:
            SystemExit: if a test fails.
        """
        if self._part == "kernels":
            self._build_kernels()
        files = self._target.test_files()
        sources = [path for pattern in self._target.sources for path in ROOT.glob(pattern) if path.suffix == ".py"]
        run = self._run([files[0], *(str(path.relative_to(ROOT)) for path in sources), *files[1:]])
        if run.exit_code:
            raise SystemExit(f"error: without any change, the tests already fail: {_noticed_by(run)}")
        return run.seconds

    def test(self, mutation: Mutation, more: Cell) -> Cell:
        """Run the tests of a mutant until one fails; return a cell with ``more`` in it."""
        path = self._folder / mutation.path
        original = path.read_text()
        path.write_text(mutation.source)
        try:
            if mutation.path.suffix == ".h":
                self._build_kernels()
            noticed_by = _noticed_by(self._run(self._likely_first(mutation.path)))
        except BuildError:
            noticed_by = COMPILER
        finally:
            path.write_text(original)
        return {
            "label": self._part,
            "before": mutation.before,
            "after": mutation.after,
            "noticed_by": noticed_by,
        } | more

    def _likely_first(self, changed: Path) -> list[str]:
        """Files of tests: the one that is called like the changed file, that file's examples, then fast ones first."""
        own = f"test_{changed.stem.removesuffix('-inl')}.py"
        names = {file: Path(file).name for file in self._target.test_files()}
        files = [file for file, name in names.items() if name == own or name != OWN_ONLY]
        files.sort(key=lambda file: (names[file] != own, self._seconds.get(file, 0)))
        examples = [str(changed)] if changed.suffix == ".py" else []
        return [files[0], *examples, *files[1:]]  # not before the first: an import by pytest alone may run twice

    def _build_kernels(self) -> None:
        """Build the kernels of this copy, and let its package use them."""
        library = build(self._folder)
        shutil.copy(library, self._folder / "src" / "psal" / library.name)

    def _run(self, files: Sequence[str]) -> Run:
        return self._tests.run(["-m", "not slow", *files])


def _noticed_by(run: Run) -> str | None:
    if -run.exit_code in HANGS:
        return "it hangs"
    if run.exit_code:
        return run.first_failure or f"it ends with exit code {run.exit_code}"
    return None


def _measure(record: Record, part: str, count: int, again: bool) -> None:
    """Test the mutants of a part that the record lacks, and with ``again`` those that no test noticed."""
    sample = TARGETS[part].draw(count)
    repeated = [name for name, cell in record.cells.items() if again and cell["noticed_by"] is None]
    missing = [mutation for mutation in sample if mutation.name not in record.cells or mutation.name in repeated]
    if not missing:
        return
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        workspace = Workspace(folder, stack.enter_context(ForkedTests(folder)), part)
        for mutation in track(missing, f"testing mutants of {part}"):
            record.cells.pop(mutation.name, None)
            repetition = {"again": True} if mutation.name in repeated else {}
            record.measure_once(mutation.name, partial(workspace.test, mutation, repetition))


def _summary(record: Record) -> Iterator[str]:
    for part in TARGETS:
        cells = {name: cell for name, cell in record.cells.items() if cell["label"] == part}
        noticed = Counter(str(cell["noticed_by"]) for cell in cells.values())
        if compiled := noticed.total() - noticed[COMPILER]:
            yield f"{part}: {compiled - noticed['None']} of {compiled} mutants are noticed"
        for name, cell in cells.items():
            if cell["noticed_by"] is None:
                yield f"  not noticed: {name}\n    was {cell['before']}"


def main() -> None:
    """Change the sources at random places, and count which changes the tests notice."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mutants", description=main.__doc__)
    parser.add_argument("parts", nargs="*", metavar="part", help=f"{', '.join(TARGETS)} [all, in this order]")
    sizes = ", ".join(f"{target.count} {part}" for part, target in TARGETS.items())
    parser.add_argument("--count", type=int, help=f"mutants of each part; a larger sample contains this one [{sizes}]")
    parser.add_argument("--again", action="store_true", help="test those again that no test noticed")
    parser.add_argument("--out", type=Path, default=Path("results/mutants.json"), help="it is resumed [%(default)s]")
    arguments = parser.parse_args()
    if unknown := set(arguments.parts) - set(TARGETS):
        parser.error(f"there is no part {', '.join(sorted(unknown))}: choose from {', '.join(TARGETS)}")
    about = metadata(command_line("python -m benchmarks.mutants", sys.argv[1:]))
    record = Record.resume(arguments.out, {"seed": 0}, about)
    for part in arguments.parts or TARGETS:
        _measure(record, part, arguments.count or TARGETS[part].count, arguments.again)
    print("\n".join(_summary(record)))


if __name__ == "__main__":
    main()
