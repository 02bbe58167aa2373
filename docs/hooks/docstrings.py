"""Griffe extension that makes the package's docstrings readable as Markdown.

The docstrings follow Google's sections, with three habits of their own: cross-references in the form of Sphinx
(``:func:`name` ``), doctest examples without a section title, and one ``Args`` entry for several arguments.
"""

import ast
import re
from pathlib import Path
from typing import Any

import griffe

PUBLIC_NAMES = (Path(__file__).parents[2] / "tests" / "public_api.txt").read_text().split()
ROLE = re.compile(r":(func|class|meth|mod|attr|data):`~?([\w.]+)`")
SHARED_ENTRY = re.compile(r"^(?P<indent> +)(?P<names>\w+(?:, \w+)+): (?P<text>.+(?:\n(?P=indent) +.+)*)", re.MULTILINE)
EXAMPLE = re.compile(r"^>>> .*(?:\n(?!\n|>>> ).+|\n>>> .*)*", re.MULTILINE)


class ReadableDocstrings(griffe.Extension):
    """Rewrites every docstring once it has been loaded."""

    def on_instance(self, *, node: ast.AST | griffe.ObjectNode, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)


def as_markdown(docstring: str) -> str:
    """Markdown of a docstring: roles as links, one entry per argument, examples as code blocks.

    >>> as_markdown("See :func:`psal.attend`.")
    'See [`attend`][psal.attend].'
    >>> print(as_markdown("Args:\\n    query, key: maps."))
    Args:
        query: maps.
        key: maps.
    """
    docstring = ROLE.sub(_link, docstring)
    docstring = SHARED_ENTRY.sub(_one_entry_per_name, docstring)
    return EXAMPLE.sub(lambda match: f"Example:\n\n```pycon\n{match[0]}\n```", docstring)


def _link(match: re.Match[str]) -> str:
    """A link to a public name, which is in the reference; any other name as code."""
    name = match[2].removeprefix("psal.")
    return f"[`{name}`][psal.{name}]" if name in PUBLIC_NAMES else f"`{match[2]}`"


def _one_entry_per_name(match: re.Match[str]) -> str:
    names = match["names"].split(", ")
    if any(name[0].isupper() for name in names):  # exceptions, in "Raises"
        return match[0]
    return "\n".join(f"{match['indent']}{name}: {match['text']}" for name in names)
