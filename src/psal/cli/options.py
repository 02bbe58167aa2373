"""Options that several commands share."""

from typing import Annotated, Literal

import typer


def _available(device: str) -> str:
    if device == "cuda":
        import torch

        if not torch.cuda.is_available():
            raise typer.BadParameter("torch finds no CUDA device: give cpu")
    return device


Device = Annotated[Literal["cpu", "cuda"], typer.Option(callback=_available, help="where to compute")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="replace existing files")]
Seed = Annotated[int, typer.Option(help="the same seed gives the same picture")]
Threads = Annotated[int | None, typer.Option(min=1, help="CPU threads; all cores by default", show_default=False)]
