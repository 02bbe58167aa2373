"""Tables and progress on the terminal."""

from collections.abc import Iterator, Sequence
from typing import TypeVar

from rich import progress
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from psal.measure.record import Record
from psal.measure.table import Table, origins

Item = TypeVar("Item")

UNLIMITED_WIDTH = 1000  # columns, for output that goes to a file or pipe


def show(record: Record, tables: Sequence[Table]) -> None:
    """Print tables and their origin to standard output."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=UNLIMITED_WIDTH)
    for table in tables:
        shown = RichTable(title=Text(table.title, "bold") if table.title else None, title_justify="left")
        for heading in table.head:
            shown.add_column(Text(heading))
        for row in table.rows:
            shown.add_row(*map(Text, row))  # Text, because square brackets are markup in plain strings
        console.print(shown)
    for line in origins(record):
        console.print(Text(line), soft_wrap=True)


def track(items: Sequence[Item], description: str) -> Iterator[Item]:
    """Iterate over items with a progress bar on standard error, if that is a terminal.

    The bar is drawn between items only: a thread that refreshes it would disturb what is timed.
    """
    console = Console(stderr=True)
    hidden = not console.is_terminal
    yield from progress.track(items, description, console=console, transient=True, auto_refresh=False, disable=hidden)
