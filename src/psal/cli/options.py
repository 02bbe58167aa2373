"""Options that several commands share."""

from typing import Annotated, Literal

import typer


def _available(device: str) -> str:
    """Return the device to use: for "auto", CUDA where torch finds it."""
    if device == "cpu":
        return device
    import torch

    found = torch.cuda.is_available()
    if device == "cuda" and not found:
        raise typer.BadParameter("torch finds no CUDA device: give cpu")
    return "cuda" if found else "cpu"


Device = Annotated[
    Literal["auto", "cpu", "cuda"],
    typer.Option(callback=_available, help="where to compute; auto: on a CUDA or ROCm device if there is one"),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="replace existing files")]
Seed = Annotated[int, typer.Option(help="the same seed gives the same picture")]
Threads = Annotated[int | None, typer.Option(min=1, help="CPU threads; all cores by default", show_default=False)]
