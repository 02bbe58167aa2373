"""The command ``psal apply-shifts``: fill other layers of a scene as ``psal inpaint`` filled one."""

from pathlib import Path
from typing import Annotated

import typer

from psal.cli.console import FAILED, complain, errors_as_messages, say
from psal.cli.options import Overwrite


def apply_shifts(
    shifts: Annotated[Path, typer.Argument(help="shift map that psal inpaint --shifts wrote", show_default=False)],
    layers: Annotated[
        list[Path],
        typer.Argument(help="pictures of the same size, 8 or 16 bits; TIFF and .npy of any depth", show_default=False),
    ],
    out: Annotated[
        str,
        typer.Option("--out", "-o", metavar="<path>", help="file to write, or a folder", show_default=False),
    ],
    overwrite: Overwrite = False,
) -> None:
    """Fill other layers of a scene (depth, normals, infrared, …) with the sources of a fill, bit for bit."""
    with errors_as_messages():
        from psal.cli.layer_jobs import plan_layers

        jobs = plan_layers(shifts, layers, out, overwrite)  # before anything heavy is loaded

        from psal.editing.apply_shifts import apply_shifts
        from psal.editing.shift_map import ShiftMap
        from psal.errors import UsageError
        from psal.io.atomic import DiskFullError
        from psal.io.layers import open_layer
        from psal.messages import describe

        shift_map = ShiftMap.open(shifts)
        failed = False
        for path, target in jobs:
            try:
                layer = open_layer(path)
                if target.suffix.lower() not in layer.suffixes:
                    raise UsageError(
                        f"{target} cannot hold {layer.pixels.dtype} of {path}: let its name end in {layer.suffixes[0]}"
                    )
                layer.save(target, apply_shifts(shift_map, layer.pixels))
            except DiskFullError:
                raise
            except Exception as error:  # whatever is wrong with one layer, the others are still filled
                line = describe(error)
                complain(line if str(path) in line else f"{path}: {line}")
                failed = True
            else:
                say(f"wrote {target}")
        if failed:
            raise typer.Exit(FAILED)
