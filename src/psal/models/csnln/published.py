"""Names of weights in the state dicts that the network's authors published (SHI-Labs/Cross-Scale-Non-Local-Attention).

They hold the weights of 128 channels and 12 recurrences for one scale each, in files of ``torch.save``.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from psal.errors import UsageError
from psal.models.csnln.network import MEAN_COLOR

RENAMED = {  # their part of a name: ours
    "tail.0.": "tail.",
    "SEM.multi_source_projection.": "cell.steps.0.projection.",
    "SEM.multi_source_projection_2.": "cell.steps.1.projection.",
    "SEM.down_sample_1.": "cell.steps.0.shrink.",
    "SEM.down_sample_2.": "cell.reduce.",  # scales 2 and 3
    "SEM.down_sample_3.": "cell.steps.1.shrink.",
    "SEM.down_sample_4.": "cell.reduce.",  # scale 4
    "SEM.error_encode.": "cell.steps.0.enlarge_error.",
    "SEM.error_encode_2.": "cell.steps.1.enlarge_error.",
    "SEM.post_conv.": "cell.post.",
    ".up_attention.conv_match_1.": ".cross_scale.query.",
    ".up_attention.conv_match_2.": ".cross_scale.key.",
    ".up_attention.conv_assembly.": ".cross_scale.value.",
    ".down_attention.conv_match1.": ".in_scale.query.",
    ".down_attention.conv_match2.": ".in_scale.key.",
    ".down_attention.conv_assembly.": ".in_scale.value.",
}


def is_published(names: Mapping[str, Tensor]) -> bool:
    """Return whether a state dict has the authors' names."""
    return any(name.startswith("SEM.") for name in names)


def translate(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Give the weights of a published state dict the names of :class:`psal.models.CSNLN`; constants are left out.

    Raises:
        UsageError: if the network expects other values than RGB in 0..1.
    """
    for name, sign in (("sub_mean.bias", -1), ("add_mean.bias", 1)):
        found = weights.get(name)
        expected = sign * torch.tensor(MEAN_COLOR)
        if found is not None and not (found.shape == (3,) and torch.allclose(found.float().cpu(), expected, atol=1e-3)):
            raise UsageError(f"{name} is {found.tolist()}, not {expected.tolist()}: only RGB in 0..1 is supported")
    return {_renamed(name): x for name, x in weights.items() if not _is_constant(name)}


def _is_constant(name: str) -> bool:
    return name.startswith(("sub_mean.", "add_mean.")) or name.endswith(".escape_NaN")


def _renamed(name: str) -> str:
    for theirs, ours in RENAMED.items():
        if theirs in name:  # no two of them begin alike: all end with a dot
            name = name.replace(theirs, ours, 1)
    return name
