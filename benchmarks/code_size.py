"""Compare the size of the code with an earlier revision, by folder: ``python -m benchmarks.code_size REVISION``

Counts files and lines, the places that spell out a search's options, and the C++ headers that parse alone.
"""

import argparse
import ast
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from io import BytesIO
from pathlib import Path

from psal.measure.machine import command_line, metadata
from psal.measure.quantities import Quantities
from psal.measure.record import Record
from psal.measure.table import quantity_tables
from psal.measure.terminal import show

SUFFIXES = {".py", ".cpp", ".h", ".js", ".html", ".css"}
# A file belongs to the first room that one of these prefixes of its path names. Some name its place in older revisions.
ROOMS = {
    "csrc": ("csrc/",),
    "ops": ("src/psal/ops/", "src/psal/exact.py"),
    "baselines": ("src/psal/baselines/",),
    "models": ("src/psal/models/", "src/psal/attentions.py", "src/psal/trained.py"),
    "io": (
        "src/psal/io/", "src/psal/whole_files.py", "src/psal/editing/files.py", "src/psal/editing/pictures.py",
        "src/psal/editing/sixteen_bit.py",
    ),
    "cli": (
        "src/psal/cli", "src/psal/console.py", "src/psal/demo.py", "src/psal/editing/folder_run.py",
        "src/psal/editing/comparison.py",
    ),
    "editing": ("src/psal/editing/",),
    "data": ("src/psal/data/",),
    "training": ("src/psal/training/",),
    "experiments and measure": ("src/psal/experiments/", "src/psal/measure/"),
    "app": ("src/psal/app/",),
    "psal, top level": ("src/psal/",),
    "benchmarks": ("benchmarks/",),
    "tests": ("tests/",),
    "docs": ("docs/",),
}  # fmt: skip
SEARCH_OPTIONS = {
    "patch_size", "neighbors", "iterations", "similarity", "init", "padding_mode", "seed", "backend",
}  # fmt: skip
MANY = 4  # of these options in one place: it spells them out


def size_by_room(tree: Path) -> dict[str, dict[str, int]]:
    """Files and lines of each room."""
    files: Counter[str] = Counter()
    lines: Counter[str] = Counter()
    for path in _sources(tree):
        name = path.relative_to(tree).as_posix()
        room = next((room for room, prefixes in ROOMS.items() if name.startswith(prefixes)), None)
        if room is not None:
            files[room] += 1
            lines[room] += len(path.read_text().splitlines())
    return {room: {"files": files[room], "lines": lines[room]} for room in ROOMS if files[room]}


def places_with_options(tree: Path) -> int:
    """Signatures, calls and class bodies of the layer that name at least four of a search's options."""
    count = 0
    for path in _sources(tree):
        name = path.relative_to(tree).as_posix()
        if path.suffix != ".py" or not name.startswith("src/psal/") or (
            name.count("/") > 2 and not name.startswith("src/psal/ops/")
        ):  # fmt: skip
            continue
        count += sum(len(_names_in(node) & SEARCH_OPTIONS) >= MANY for node in ast.walk(ast.parse(path.read_text())))
    return count


def headers_that_parse(tree: Path) -> tuple[int, int]:
    """C++ headers that the compiler accepts alone, and all of them."""
    torch_include = [f"-I{path}" for path in _torch_include_paths()]
    headers = sorted((tree / "csrc").rglob("*.h"))
    command = ["g++", "-std=c++20", "-fsyntax-only", "-x", "c++", *torch_include]
    results = [subprocess.run([*command, str(header)], capture_output=True).returncode for header in headers]
    return results.count(0), len(headers)


def measure(tree: Path) -> dict[str, dict[str, int]]:
    """Counts of one tree, by room and by what is counted."""
    parsed, headers = headers_that_parse(tree)
    counts = size_by_room(tree)
    counts["the layer"] = {"places that spell out the search options": places_with_options(tree)}
    counts["C++ headers"] = {"headers": headers, "headers that parse alone": parsed}
    return counts


def main() -> None:
    """Compare an earlier revision with the last commit, and write results/code_size.json."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.code_size", description=main.__doc__)
    parser.add_argument("revision", help="the earlier revision, as git knows it")
    parser.add_argument("--out", type=Path, default=Path("results/code_size.json"), help="results file")
    arguments = parser.parse_args()
    before, after = (measure_revision(revision) for revision in (arguments.revision, "HEAD"))
    about = metadata(command_line("python -m benchmarks.code_size", sys.argv[1:]))
    record = Record.resume(arguments.out, {"revision": arguments.revision}, about, overwrite=True)
    for room, counts in after.items():
        quantities = Quantities(label=room)
        for what, count in counts.items():
            quantities.add(what, [count], against=f"{before.get(room, {}).get(what, 0):,} before")
        record.measure_once(room, quantities.cell)
    show(record, quantity_tables(record))


def measure_revision(revision: str) -> dict[str, dict[str, int]]:
    """Counts of a revision, exported to a temporary folder."""
    archive = subprocess.run(["git", "archive", revision], capture_output=True, check=True).stdout
    with tempfile.TemporaryDirectory() as folder, tarfile.open(fileobj=BytesIO(archive)) as files:
        files.extractall(folder, filter="data")
        return measure(Path(folder))


def _sources(tree: Path) -> list[Path]:
    return sorted(path for path in tree.rglob("*") if path.suffix in SUFFIXES and path.is_file())


def _names_in(node: ast.AST) -> set[str]:
    """Names that a signature, a call or a class body lists."""
    if isinstance(node, ast.FunctionDef):
        return {argument.arg for argument in (*node.args.args, *node.args.kwonlyargs)}
    if isinstance(node, ast.Call):
        named = {keyword.arg for keyword in node.keywords if keyword.arg}
        values = (*node.args, *(keyword.value for keyword in node.keywords))
        return named | {value.attr for value in values if isinstance(value, ast.Attribute)} | {
            value.id for value in values if isinstance(value, ast.Name)
        }  # fmt: skip
    if isinstance(node, ast.ClassDef):
        return {
            line.target.id
            for line in node.body
            if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name)
        }
    return set()


def _torch_include_paths() -> list[str]:
    from torch.utils.cpp_extension import include_paths

    return include_paths()


if __name__ == "__main__":
    main()
