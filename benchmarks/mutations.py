"""Deliberate faults: single operators and constants changed in the sources, for :mod:`benchmarks.mutants`."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

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


def cpp_mutations(path: Path) -> Iterator[Mutation]:
    """Mutations of a C++ file; some do not compile."""
    lines = (ROOT / path).read_text().splitlines(keepends=True)
    for number, line in enumerate(lines):
        code = line.partition("//")[0]
        if code.lstrip().startswith(("#", "template", "static_assert", "PSAL_")):
            continue
        for pattern, replacements in CPP_REPLACEMENTS:
            for match in re.finditer(pattern, code):
                for replacement in replacements:
                    changed = line[: match.start()] + replacement + line[match.end() :]
                    source = "".join([*lines[:number], changed, *lines[number + 1 :]])
                    yield Mutation(path, number + 1, line.strip(), changed.strip(), source)


def python_mutations(path: Path) -> Iterator[Mutation]:
    """Cosmic Ray's mutations of a Python file, but for unions, which are type hints here."""
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator, operator_names

    source = (ROOT / path).read_text()
    nodes = list(ast_nodes(get_ast(source)))
    for name in operator_names():
        if any(word in name for word in ("BitOr", "Variable", "Exception")):  # the last one fails on dotted names
            continue
        operator = get_operator(name)()
        positions = [start for node in nodes for (start, _) in operator.mutation_positions(node)]
        for occurrence, (number, _) in enumerate(positions):
            changed = mutate_code(source, operator, occurrence)
            pairs = zip(source.splitlines(), changed.splitlines(), strict=False)
            line, before, after = next(
                ((i, a, b) for i, (a, b) in enumerate(pairs, 1) if a != b), (number, "", f"line {number} removed")
            )
            yield Mutation(path, line, before.strip(), after.strip(), changed)
