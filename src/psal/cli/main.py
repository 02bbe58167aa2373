"""The command ``psal``: its groups of commands, ``--version``, and how it starts."""

import io
import sys
from typing import Annotated

try:
    import typer

    from psal.cli.app import app as app_command
    from psal.cli.apply_shifts import apply_shifts
    from psal.cli.bench import bench
    from psal.cli.console import say
    from psal.cli.demo import demo
    from psal.cli.edit import add_edit_commands
    from psal.cli.samples import samples
    from psal.cli.train import evaluate, train
except ImportError as missing:
    sys.exit(f"error: {missing.name} is missing, which the command line needs: pip install 'psal[edit]'")

from psal.version import __version__
from psal.waiting import let_threads_sleep

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Edit photographs with patches of the photograph itself or of another one; measure and train the attention.",
)
add_edit_commands(app)
app.command("apply-shifts")(apply_shifts)
app.command("samples")(samples)
app.command("demo")(demo)
app.command("app")(app_command)
app.add_typer(bench, name="bench")
app.add_typer(train, name="train")
app.add_typer(evaluate, name="eval")


def _show_version(wanted: bool) -> None:
    if wanted:
        say(f"psal {__version__}")
        raise typer.Exit()


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="show the version")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line."""
    let_threads_sleep()  # before a command loads torch
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # file names need not be valid text
    app(prog_name="psal")
