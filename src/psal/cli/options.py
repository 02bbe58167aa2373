"""Options that several commands share."""

from typing import Annotated, Literal

import typer

DeviceName = Literal["auto", "cpu", "cuda"]
AUTO_HELP = "auto: on a CUDA or ROCm device if there is one"


def _available(device: str) -> str:
    """Return the device to use: for "auto", CUDA where torch finds it."""
    if device == "cpu":
        return device
    from psal.devices import choose_device
    from psal.errors import UsageError

    try:
        return choose_device(device).type
    except UsageError:
        raise typer.BadParameter("torch finds no CUDA device: give cpu") from None


Device = Annotated[DeviceName, typer.Option(callback=_available, help=f"where to compute; {AUTO_HELP}")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="replace existing files")]
Seed = Annotated[int, typer.Option(help="the same seed gives the same picture")]
Threads = Annotated[int | None, typer.Option(min=1, help="CPU threads; all cores by default", show_default=False)]
