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
    """Open a page in the browser with all edits and a look inside the attention."""
    with errors_as_messages("app"):
        from psal.app.server import address_of, is_loopback, listen, serve

        listening = listen(host, port)
        address = address_of(listening, host)

        def ready() -> None:
            if not is_loopback(host):
                complain(
                    f"whoever can reach this computer can use the page, as it listens on {host}; leave out --host to "
                    "keep it to yourself",
                    prefix="warning: ",
                )
            say(f"psal is at {address} (ctrl-C stops it)")
            if open_browser:
                import threading
                import webbrowser

                threading.Thread(target=webbrowser.open, args=[address], daemon=True).start()

        serve(listening, host, ready)
