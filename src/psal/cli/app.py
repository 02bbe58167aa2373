"""The command ``psal app``."""

from typing import Annotated

import typer

from psal.cli.console import complain, errors_as_messages, say


def app(
    host: Annotated[
        str, typer.Option(help="address to listen on; any other one lets other computers in")
    ] = "127.0.0.1",
    port: Annotated[
        int | None,
        typer.Option(
            min=1, max=65535, help="port to listen on; the first free one from 7860 on by default", show_default=False
        ),
    ] = None,
    open_browser: Annotated[bool, typer.Option("--open", help="show the page in the browser")] = False,
) -> None:
    """Open an editor in the browser: all edits, a look inside the attention, and an HTTP API."""
    with errors_as_messages("app"):
        from psal.app.server import listen, serve

        def ready(address: str) -> None:
            if "token=" in address:
                complain(
                    f"whoever has the address below can use the page, as it listens on {host}; what is sent is not "
                    "encrypted; leave out --host to keep it to yourself",
                    prefix="warning: ",
                )
            say(f"psal is at {address} (ctrl-C stops it)")
            if open_browser:
                import threading
                import webbrowser

                threading.Thread(target=webbrowser.open, args=[address], daemon=True).start()

        serve(listen(host, port), host, ready)
