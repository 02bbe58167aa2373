"""The command ``psal samples``: pictures to try the edits on."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from psal.cli.console import errors_as_messages, say
from psal.cli.options import Overwrite

if TYPE_CHECKING:
    from numpy.typing import NDArray


def samples(
    folder: Annotated[Path, typer.Argument(help="where to write them")] = Path("samples"), overwrite: Overwrite = False
) -> None:
    """Write sample pictures with masks and references, and print commands to try on them."""
    with errors_as_messages():
        from psal.data.samples import samples
        from psal.editing.registry import EDITS
        from psal.errors import UsageError
        from psal.io.atomic import check_folder_is_writable
        from psal.io.photo import Photo

        pictures: dict[str, NDArray[Any]] = {}
        commands = []
        for sample in samples():
            files = {f"{sample.edit}.png": sample.picture}
            if sample.partner is not None:
                files[f"{sample.edit}_{EDITS[sample.edit].partner}.png"] = sample.partner
            pictures |= files
            inputs = " ".join(shlex.quote(str(folder / name)) for name in files)
            out = shlex.quote(str(folder / f"{sample.edit}_out.png"))
            commands.append(f"psal {sample.edit} {inputs} -o {out} --compare")
        if not overwrite and (existing := [folder / name for name in pictures if (folder / name).exists()]):
            raise UsageError(f"{existing[0]} exists: add --overwrite to replace it, or choose another folder")
        check_folder_is_writable(folder)
        for name, pixels in pictures.items():
            Photo(pixels).save(folder / name)
        say(f"wrote {len(pictures)} pictures to {folder}; now try")
        for command in commands:
            say(f"  {command}")
