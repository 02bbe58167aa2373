"""Deliberate faults: single operators and constants changed in the sources, for :mod:`benchmarks.mutants`."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.kernel_build import ROOT


@dataclass(frozen=True)
class Mutation:
    """One changed place.

    Attributes:
        path: source file, from the project's folder.
        line: its number, from 1.
        before, after: the line without indentation.
        source: the whole changed file.
    """

    path: Path
    line: int
    before: str
    after: str
    source: str

    @property
    def name(self) -> str:
        """File, line and what the line became: unique."""
        return f"{self.path}:{self.line}: {self.after}"


# What is replaced by what in C++. Spaces tell operators from template brackets, references and pointers.
CPP_REPLACEMENTS = (
    (r" < ", (" <= ", " >= ")),
    (r" > ", (" >= ", " <= ")),
    (r" <= ", (" < ",)),
    (r" >= ", (" > ",)),
    (r" == ", (" != ",)),
    (r" != ", (" == ",)),
    (r" \+ ", (" - ",)),
    (r" - ", (" + ",)),
    (r" \* (?=\w)", (" + ",)),
    (r" / ", (" * ",)),
    (r" % ", (" / ",)),
    (r" && ", (" || ",)),
    (r" \|\| ", (" && ",)),
    (r" \+= ", (" -= ", " = ")),
    (r" -= ", (" += ",)),
    (r"(?<=[( ])!(?=\w)", ("",)),
    (r"\bcontinue\b", ("break",)),
    (r"\btrue\b", ("false",)),
    (r"\bfalse\b", ("true",)),
    (r"\bstd::min\b", ("std::max",)),
    (r"\bstd::max\b", ("std::min",)),
    (r"(?<![\w.])0(?![\w.])", ("1",)),
    (r"(?<![\w.])1(?![\w.])", ("0", "2")),
    (r"(?<![\w.])([2-9]|\d\d+)(?![\w.])", ("1",)),
)


@dataclass(frozen=True)
class Place:
    """A line that can be changed, and how."""

    path: Path
    line: int
    change: Callable[[], Mutation]


def cpp_places(path: Path) -> Iterator[Place]:
    """Places of a C++ file; some changes do not compile."""
    lines = (ROOT / path).read_text().splitlines(keepends=True)
    for number, line in enumerate(lines):
        code = line.partition("//")[0]
        if code.lstrip().startswith(("#", "template", "static_assert", "PSAL_")):
            continue
        for pattern, replacements in CPP_REPLACEMENTS:
            for match in re.finditer(pattern, code):
                for replacement in replacements:
                    changed = line[: match.start()] + replacement + line[match.end() :]
                    yield Place(path, number + 1, partial(_with_line, path, lines, number, changed))


def _with_line(path: Path, lines: list[str], number: int, changed: str) -> Mutation:
    source = "".join([*lines[:number], changed, *lines[number + 1 :]])
    return Mutation(path, number + 1, lines[number].strip(), changed.strip(), source)


# Cosmic Ray's operators that are left out: unions, which are type hints here; replacements that mostly fail by their
# types, which any test notices; `is` for equality, which mostly changes nothing; and what fails on dotted names.
LEFT_OUT = ("_BitOr", "_BitAnd", "_BitXor", "_LShift", "_RShift", "_Pow", "_Invert", "_Not", "_Is", "_IsNot")


def python_places(path: Path) -> Iterator[Place]:
    """Places where Cosmic Ray changes a Python file."""
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.plugins import get_operator, operator_names

    source = (ROOT / path).read_text()
    nodes = list(ast_nodes(get_ast(source)))
    for name in operator_names():
        if name.endswith(LEFT_OUT) or any(word in name for word in ("BitOr_", "Variable", "Exception")):
            continue
        operator = get_operator(name)()
        positions = [start for node in nodes for (start, _) in operator.mutation_positions(node)]
        for occurrence, (number, _) in enumerate(positions):
            yield Place(path, number, partial(_with_operator, path, source, operator, occurrence))


def _with_operator(path: Path, source: str, operator: Any, occurrence: int) -> Mutation:
    from cosmic_ray.mutating import mutate_code

    changed = mutate_code(source, operator, occurrence)
    pairs = zip(source.splitlines(), changed.splitlines(), strict=False)
    line, before, after = next((i, a, b) for i, (a, b) in enumerate(pairs, 1) if a != b)
    return Mutation(path, line, before.strip(), after.strip(), changed)
