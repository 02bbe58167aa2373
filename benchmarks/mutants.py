"""Count the deliberate faults that the tests notice: ``python -m benchmarks.mutants kernels``

Each mutant is a copy of the project with one operator or constant changed. Its tests run until one fails. Which places
are changed is drawn at random, always the same ones. results/mutants_PART.json gets every mutant; the command prints
those that no test noticed. An unchanged copy is tested first: if that fails, no failure of a mutant means anything.
"""

import argparse
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from queue import SimpleQueue

from benchmarks.kernel_build import ROOT, BuildError, build, copy_sources
from benchmarks.mutations import Mutation, cpp_mutations, python_mutations
from psal.measure.machine import command_line, metadata
from psal.measure.record import Cell, Record
from psal.measure.terminal import track

PYTEST = (sys.executable, "-m", "pytest", "-x", "-q", "-m", "not slow", "-p", "no:cacheprovider")
COMPILER, HANGS = "the compiler", "it hangs"
# A mutant that takes longer hangs, which is noticed. CPU time, so that a busy machine does not make one hang; a mutant
# that waits for ever takes none, hence the second limit.
MAX_CPU_SECONDS = 600
MAX_SECONDS = 3600
LAYER_TESTS = ("tests/ops", "tests/functional", *(f"tests/test_{name}.py" for name in (
    "checks", "options", "matches", "layers", "seeds", "swap", "tokens", "compile")))  # fmt: skip
# Of the kernels, one instruction set alone is built: these tests would call the others, which are not there.
KERNEL_TESTS = (*LAYER_TESTS, "--ignore=tests/ops/test_simd.py")


@dataclass(frozen=True)
class Target:
    """Sources to change, and the tests that should notice.

    Attributes:
        sources: glob patterns, from the project's folder.
        tests: arguments of pytest; the fastest come first.
        mutations: of one file.
    """

    sources: tuple[str, ...]
    tests: tuple[str, ...]
    mutations: Callable[[Path], Iterator[Mutation]]

    def draw(self, count: int) -> list[Mutation]:
        """Random mutations, each of another line; the same ones every time."""
        paths = sorted(path.relative_to(ROOT) for pattern in self.sources for path in ROOT.glob(pattern))
        mutations = [mutation for path in paths for mutation in self.mutations(path)]
        random.Random(0).shuffle(mutations)
        by_line = {(mutation.path, mutation.line): mutation for mutation in mutations}
        return list(by_line.values())[:count]


LAYER_SOURCES = ("functional", "options", "swap", "ops/*")
TARGETS = {
    "kernels": Target(("csrc/kernels/*-inl.h",), KERNEL_TESTS, cpp_mutations),
    "layer": Target(tuple(f"src/psal/{name}.py" for name in LAYER_SOURCES), LAYER_TESTS, python_mutations),
    "io": Target(("src/psal/io/*.py",), ("tests/io", "tests/cli", "tests/editing"), python_mutations),
    "training": Target(("src/psal/training/*.py",), ("tests/training",), python_mutations),
}


class Workspace:
    """A copy of the project in which one mutant after the other is tested."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        ignored = shutil.ignore_patterns("__pycache__")
        for name in ("src", "tests", "docs", "benchmarks", "results"):
            shutil.copytree(ROOT / name, folder / name, ignore=ignored)
        for name in ("pyproject.toml", "README.md", "mkdocs.yml"):
            shutil.copy(ROOT / name, folder)
        copy_sources(folder)

    def test(self, mutation: Mutation, tests: tuple[str, ...]) -> Cell:
        """Run the tests of a mutant until one fails."""
        path = self.folder / mutation.path
        original = path.read_text()
        path.write_text(mutation.source)
        try:
            if mutation.path.suffix == ".h":
                self.build_kernels()
            noticed_by = self.first_failure(tests)
        except BuildError:
            noticed_by = COMPILER
        finally:
            path.write_text(original)
        return {"before": mutation.before, "after": mutation.after, "noticed_by": noticed_by}

    def build_kernels(self) -> None:
        """Build the kernels of this copy, and let its package use them."""
        library = build(self.folder)
        shutil.copy(library, self.folder / "src" / "psal" / library.name)

    def first_failure(self, tests: tuple[str, ...]) -> str | None:
        """Run tests until one fails; return which, or None if all pass."""
        environment = os.environ | {
            "PYTHONPATH": str(self.folder / "src"), "OMP_WAIT_POLICY": "PASSIVE", "OMP_NUM_THREADS": "2",
        }  # fmt: skip
        try:
            done = subprocess.run(
                [*PYTEST, *tests],
                cwd=self.folder,
                env=environment,
                capture_output=True,
                text=True,
                timeout=MAX_SECONDS,
                preexec_fn=partial(resource.setrlimit, resource.RLIMIT_CPU, (MAX_CPU_SECONDS, MAX_CPU_SECONDS + 5)),
            )
        except subprocess.TimeoutExpired:
            return HANGS
        if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
            return HANGS
        if not done.returncode:
            return None
        lines = (line for line in done.stdout.splitlines() if line.startswith(("FAILED ", "ERROR ")))
        return next(lines, f"it crashes with exit code {done.returncode}").partition(" - ")[0]


def _check_unchanged(workspaces: SimpleQueue[Workspace], target: Target) -> None:
    """Test an unchanged copy, built as the mutants are.

    Raises:
        SystemExit: if a test fails.
    """
    workspace = workspaces.get()
    if target is TARGETS["kernels"]:
        workspace.build_kernels()
    if failure := workspace.first_failure(target.tests):
        raise SystemExit(f"error: without any change, the tests already fail: {failure}")
    workspaces.put(workspace)


def main() -> None:
    """Change the sources of one part at random places, and count which changes its tests notice."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mutants", description=main.__doc__)
    parser.add_argument("part", choices=list(TARGETS))
    parser.add_argument("--count", type=int, default=100, help="number of mutants [100]")
    parser.add_argument("--workers", type=int, default=2, help="mutants at a time [2]")
    parser.add_argument("--out", type=Path, help="results file; it is resumed [results/mutants_PART.json]")
    arguments = parser.parse_args()
    target = TARGETS[arguments.part]
    about = metadata(command_line("python -m benchmarks.mutants", sys.argv[1:]))
    record = Record.resume(arguments.out or Path(f"results/mutants_{arguments.part}.json"), {"seed": 0}, about)
    missing = [mutation for mutation in target.draw(arguments.count) if mutation.name not in record.cells]
    with tempfile.TemporaryDirectory() as temporary, ThreadPoolExecutor(arguments.workers) as pool:
        free: SimpleQueue[Workspace] = SimpleQueue()
        for number in range(arguments.workers):
            free.put(Workspace(Path(temporary, str(number))))
        if missing:
            _check_unchanged(free, target)

        def test(mutation: Mutation) -> Cell:
            workspace = free.get()
            try:
                return workspace.test(mutation, target.tests)
            finally:
                free.put(workspace)

        tested = [(mutation.name, pool.submit(test, mutation)) for mutation in missing]
        for name, future in track(tested, "testing mutants"):
            record.measure_once(name, future.result)
    noticed = Counter(str(cell["noticed_by"]) for cell in record.cells.values())
    compiled = noticed.total() - noticed[COMPILER]
    print(f"{compiled - noticed['None']} of {compiled} mutants that compile are noticed; the others:")
    for name, cell in record.cells.items():
        if cell["noticed_by"] is None:
            print(f"  {name}\n    was {cell['before']}")


if __name__ == "__main__":
    main()
