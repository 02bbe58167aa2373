"""Numbers, tables and their origin as Markdown, and into a README."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from psal.errors import UsageError

END = "<!-- end -->"


def number(value: float) -> str:
    """Three significant digits, thousands separated; four where the third alone says little, as in 1.027.

    >>> number(1234567.0), number(0.0123456), number(1.0271)
    ('1,234,567', '0.0123', '1.027')
    """
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.4g}" if 0.9 <= abs(value) < 2 else f"{value:.3g}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Cells as a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def origin(about: dict[str, Any]) -> str:
    """On what, when and by which command it was measured."""
    versions = ", ".join(f"{name} {found}" for name, found in about["versions"].items() if found)
    where = f"{about['cpu']} ({about['cores']} cores, {about['cpu_capability']}), {about['system']}"
    return f"""\
Measured on {about["date"][:10]} by `{about["command"]}` on {where},
Python {about["python"]}, {versions}.
"""


def update_readme(readme: Path, name: str, text: str) -> None:
    """Put the text between the README's markers of results/name.md.

    Raises:
        UsageError: if the markers are not there.
    """
    marker = f"<!-- results/{name}.md -->"
    before, start, rest = (readme.read_text() if readme.exists() else "").partition(marker)
    _, end, after = rest.partition(END)
    if not start or not end:
        raise UsageError(f"{readme} has no part between {marker} and {END}")
    readme.write_text(f"{before}{start}\n{text}{end}{after}")
