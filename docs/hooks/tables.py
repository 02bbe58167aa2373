"""mkdocs hook: tables and figures of results/ in the pages.

A line ``<!-- table: NAME -->`` becomes the tables of ``results/NAME.json``, followed by their origin; those of
:data:`MODELED` are computed. A line ``<!-- figure: NAME | alternative text -->`` becomes the picture
``results/NAME.png``. Unknown names abort the build.
"""

import posixpath
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mkdocs.exceptions import PluginError

from psal.experiments import gpu_bounds
from psal.experiments.tables import tables_of
from psal.measure.record import Record
from psal.measure.table import Table, origins, timing_tables

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

MARKER = re.compile(
    r"^(?P<indent>[ \t]*)<!-- (?P<kind>table|figure): (?P<name>\w+)(?: \| (?P<text>.+))? -->[ \t]*$", re.M
)

MODELED = {"gpu_bounds": gpu_bounds.tables}  # tables that are computed, not measured


def on_files(files: "Files", config: "MkDocsConfig", **_: Any) -> "Files":
    """Add the pictures of results/ to the site."""
    from mkdocs.structure.files import File

    for path in sorted(_results(config).glob("*.png")):
        files.append(File.generated(config, f"results/{path.name}", abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: "Page", config: "MkDocsConfig", **_: Any) -> str:
    """Replace the markers of a page."""
    return replace_markers(markdown, _results(config), page.file.src_uri)


def replace_markers(markdown: str, results: Path, page: str) -> str:
    """Replace the markers in a page's Markdown.

    Args:
        markdown: the page.
        results: folder of the results files.
        page: path of the page below docs/, for relative links and error messages.

    Raises:
        PluginError: if a marker names something that is not in results/, or a figure has no alternative text.
    """

    def replaced(match: re.Match[str]) -> str:
        if match["kind"] == "figure":
            text = figure(match["name"], match["text"], results, page)
        else:
            text = table(match["name"], results, page)
        return "\n".join(match["indent"] + line if line else "" for line in text.split("\n"))

    return MARKER.sub(replaced, markdown)


def table(name: str, results: Path, page: str) -> str:
    """Tables of a results file and their origin, as Markdown."""
    if name in MODELED:
        return "\n\n".join([*map(render, MODELED[name]()), "Modeled, in milliseconds; not measured."])
    is_timing = name.endswith("_times")
    path = results / f"{name.removesuffix('_times')}.json"
    if not path.exists():
        known = ", ".join(sorted(file.stem for file in results.glob("*.json")))
        raise PluginError(f"{page}: unknown table {name!r}; known are {known}, and layer_times")
    record = Record.read(path)
    tables = timing_tables(record) if is_timing else tables_of(record)
    if not any(each.rows for each in tables):
        raise PluginError(f"{page}: table {name!r} has no rows in {path}")
    return "\n\n".join([*map(render, tables), *origins(record)])


def render(table: Table) -> str:
    """A table as Markdown, under its title."""
    lines = [_line(table.head), _line(["---"] * len(table.head)), *map(_line, table.rows)]
    return (f"**{table.title}**\n\n" if table.title else "") + "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def figure(name: str, text: str | None, results: Path, page: str) -> str:
    """A picture of results/, as Markdown."""
    if not (results / f"{name}.png").exists():
        known = ", ".join(sorted(file.stem for file in results.glob("*.png")))
        raise PluginError(f"{page}: unknown figure {name!r}; known are {known}")
    if not text:
        raise PluginError(f"{page}: figure {name!r} needs alternative text: <!-- figure: {name} | text -->")
    return f"![{text}]({posixpath.relpath(f'results/{name}.png', posixpath.dirname(page) or '.')})"


def _results(config: "MkDocsConfig") -> Path:
    return Path(config.config_file_path).parent / "results"
