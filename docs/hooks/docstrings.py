"""Griffe extension that makes the package's docstrings readable as Markdown.

The docstrings follow Google's sections, with three habits of their own: cross-references in the form of Sphinx
(``:func:`name` ``), doctest examples without a section title, and one ``Args`` entry for several arguments.
"""

import ast
import re
from typing import Any

import griffe

ROLE = re.compile(r":(func|class|meth|mod|attr):`~?([\w.]+)`")
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
    role, target = match.groups()
    if role == "mod":
        return f"`{target}`"
    path = target if target.startswith("psal.") else f"psal.{target}"
    return f"[`{target.rpartition('.')[2]}`][{path}]" if path.count(".") == 1 else f"`{target}`"


def _one_entry_per_name(match: re.Match[str]) -> str:
    names = match["names"].split(", ")
    if any(name[0].isupper() for name in names):  # exceptions, in "Raises"
        return match[0]
    return "\n".join(f"{match['indent']}{name}: {match['text']}" for name in names)
