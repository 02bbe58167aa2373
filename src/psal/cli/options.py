"""Options that several commands have."""

from typing import Annotated

import typer


def _device(name: str) -> str:
    if name not in ("cpu", "cuda"):
        raise typer.BadParameter(f"{name!r} is not a device that can be used: give cpu or cuda")
    if name == "cuda":
        import torch

        if not torch.cuda.is_available():
            raise typer.BadParameter("torch finds no CUDA device here: give cpu")
    return name


Device = Annotated[str, typer.Option(callback=_device, help="cpu or cuda")]
