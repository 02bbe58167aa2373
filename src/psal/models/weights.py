"""Files of weights: reading them, and checking that they hold those of a network."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from psal.errors import UsageError

MAX_LISTED = 4  # names in an error message
MAX_ERROR_LENGTH = 200  # of torch's own message


def read_weights(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Read a .safetensors file: its tensors by name, and its metadata, the settings that it was trained with.

    Raises:
        UsageError: if it cannot be read.
    """
    try:
        with safe_open(path, "pt") as file:
            settings = dict(file.metadata() or {})
            return {name: file.get_tensor(name) for name in file.keys()}, settings  # noqa: SIM118 - it is not a dict
    except (OSError, SafetensorError) as error:
        raise UsageError(f"{path} cannot be read as weights: {error}") from None


def read_state_dict(path: Path) -> dict[str, Tensor]:
    """Read a state dict from a file of ``torch.save``. No code in it is run.

    Raises:
        UsageError: if it cannot be read, or holds something else.
    """
    try:
        content: Any = torch.load(path, map_location="cpu", weights_only=True)
    except MemoryError:
        raise
    except Exception as error:  # unpickling arbitrary bytes raises errors of any kind
        message = " ".join(str(error).split())[:MAX_ERROR_LENGTH]
        raise UsageError(f"{path} cannot be read as weights: {message}") from None
    if not isinstance(content, Mapping) or not all(isinstance(x, Tensor) for x in content.values()):
        raise UsageError(f"{path} is not a state dict: it must map names to tensors")
    return {str(name): x for name, x in content.items()}


def check_names(
    found: Mapping[str, Tensor], expected: Mapping[str, Tensor], published: Mapping[str, str] | None = None
) -> None:
    """Check that weights have the names and shapes that a network expects.

    Args:
        found: the weights.
        expected: the network's own.
        published: names in the file by the network's own, if they differ; error messages use them.

    Raises:
        UsageError: if not; the message says what is missing, left over or of another shape.
    """
    shown = {name: (published or {}).get(name, name) for name in expected}
    problems = [
        _listed("missing", (shown[name] for name in expected if name not in found)),
        _listed("left over", (name for name in found if name not in expected)),
        _listed(
            "of another shape",
            (
                f"{shown[name]} {tuple(found[name].shape)}, not {tuple(x.shape)}"
                for name, x in expected.items()
                if name in found and found[name].shape != x.shape
            ),
        ),
    ]
    if any(problems):
        raise UsageError("; ".join(filter(None, problems)))


def _listed(what: str, names: Iterable[str]) -> str:
    listed = list(names)
    if not listed:
        return ""
    more = f" and {len(listed) - MAX_LISTED} more" if len(listed) > MAX_LISTED else ""
    return f"{what}: {', '.join(listed[:MAX_LISTED])}{more}"
