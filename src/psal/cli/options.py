"""Options that several commands share."""

from typing import Annotated, Literal

import typer

MAX_SEED = 2**63 - 1  # seeds are 64-bit integers


def _available(device: str) -> str:
    if device == "cuda":
        import torch

        if not torch.cuda.is_available():
            raise typer.BadParameter("torch finds no CUDA device: give cpu")
    return device


Device = Annotated[Literal["cpu", "cuda"], typer.Option(callback=_available, help="where to compute")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="replace existing files")]
Seed = Annotated[
    int, typer.Option(min=-MAX_SEED - 1, max=MAX_SEED, metavar="<int>", help="the same seed gives the same picture")
]
Threads = Annotated[int | None, typer.Option(min=1, help="CPU threads; all cores by default", show_default=False)]
