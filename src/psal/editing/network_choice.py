"""The choice between patches and a trained network, which several edits have."""

import os
from dataclasses import dataclass
from pathlib import Path

from psal.checks import check_word
from psal.editing.registry import EDITS
from psal.models.csnln.weights import UPSCALER

PACKAGED = {"upscale": UPSCALER}  # networks that come with the package


@dataclass(frozen=True)
class NetworkChoice:
    """A trained network that does an edit in place of patches.

    Attributes:
        weights: its file.
        attention: name of the attention to put into it.
    """

    weights: Path
    attention: str


def choose_network(
    edit: str, model: str, weights: str | os.PathLike[str] | None, attention: str
) -> NetworkChoice | None:
    """Check the arguments ``model``, ``weights`` and ``attention`` of an edit; return None for patches.

    Raises:
        ValueError, TypeError: if one is not among the edit's choices, or they do not fit together.
    """
    choices = {option.name: option.choices for option in EDITS[edit].options}
    check_word("model", model, choices["model"])
    check_word("attention", attention, choices["attention"])
    if model != "network":
        if weights is not None:
            raise ValueError(f"weights are those of a network, but model is {model!r}: take model='network'")
        return None
    if weights is None and edit not in PACKAGED:
        raise ValueError(f"model 'network' needs weights: a file that psal train {edit} wrote")
    return NetworkChoice(PACKAGED[edit] if weights is None else Path(weights), attention)
