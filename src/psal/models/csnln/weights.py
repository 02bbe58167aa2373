"""Trained super-resolution networks: from ``psal train upscale``, published ones, and the one in the package."""

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from psal.errors import UsageError
from psal.models.csnln.attentions import check_cross_scale, check_in_scale
from psal.models.csnln.cell import KERNELS
from psal.models.csnln.network import CSNLN
from psal.models.csnln.published import is_published, translate
from psal.models.weights import check_names, read_state_dict, read_weights

# Trained by psal train upscale --data photos/train --scale 2 --width 32 --depth 4 --size 32 --batch 2
# --learning-rate 0.0005 --iterations 9000 --threads 1 --out RUN
UPSCALER = Path(str(files("psal.models"))) / "upscaler_x2.safetensors"


class UpscalerFile(NamedTuple):
    """Contents of a file of weights.

    Attributes:
        tensors: by the names of :class:`psal.models.CSNLN`.
        scale, width, depth: arguments of the network.
        cross_scale, in_scale: the attention layers that it was trained with.
        residual: whether it adds to the picture enlarged bicubically.
    """

    tensors: dict[str, Tensor]
    scale: int
    width: int
    depth: int
    cross_scale: str
    in_scale: str
    residual: bool

    def build(self, cross_scale: str | None = None, in_scale: str | None = None, seed: int | None = None) -> CSNLN:
        """Build the network in eval mode, with the layers that it was trained with, or others."""
        network = CSNLN(
            self.scale, width=self.width, depth=self.depth, cross_scale=cross_scale or self.cross_scale,
            in_scale=in_scale or self.in_scale, residual=self.residual, seed=seed,
        )  # fmt: skip
        network.load_state_dict(self.tensors)
        return network.eval()


def load_upscaler(
    weights: Path, *, cross_scale: str | None = None, in_scale: str | None = None, seed: int | None = None
) -> CSNLN:
    """Load a network of any scale, width and depth.

    Args:
        weights: a file that ``psal train upscale`` wrote, or a state dict of the network's authors, in a file of
            ``torch.save`` or safetensors.
        cross_scale, in_scale: attention layers; see :class:`psal.models.CSNLN`. None takes those that the network was
            trained with; the published ones were trained with exact attention.
        seed: of the network's searches; None draws one from torch's generator in each call.

    Returns:
        The network in eval mode.

    Raises:
        UsageError: if the file does not hold the weights of such a network, or a layer is unknown.
    """
    if cross_scale is not None:
        check_cross_scale(cross_scale)
    if in_scale is not None:
        check_in_scale(in_scale)
    return read_upscaler(weights).build(cross_scale, in_scale, seed)


def read_upscaler(weights: Path) -> UpscalerFile:
    """Read and check a file of weights; see :func:`load_upscaler`.

    Raises:
        UsageError: if the file does not hold the weights of such a network.
    """
    tensors, settings = _read(weights)
    if not is_published(tensors) and settings.get("task") != "upscale":
        raise UsageError(f"{weights} was not written by psal train upscale, and has no published names either")
    try:
        if is_published(tensors):
            tensors = translate(tensors)
        layers = settings.get("cross_scale", "exact"), settings.get("in_scale", "exact")
        file = UpscalerFile(tensors, *architecture_of(tensors), *layers, settings.get("residual") == "True")
        with torch.device("meta"):
            expected = CSNLN(file.scale, width=file.width, depth=file.depth, cross_scale=layers[0], in_scale=layers[1])
        check_names(tensors, expected.state_dict())
    except ValueError as error:
        raise UsageError(f"{weights} does not hold the weights of an upscaler: {error}") from None
    return file


def architecture_of(tensors: Mapping[str, Tensor]) -> tuple[int, int, int]:
    """Return scale, width and depth of the network that has these weights.

    Raises:
        UsageError: if there is none.
    """
    decisive = ("head.1.0.weight", "cell.reduce.0.weight", "tail.weight")
    if lacking := [name for name in decisive if name not in tensors]:
        raise UsageError(f"missing: {', '.join(lacking)}")
    head, reduce, tail = (tensors[name] for name in decisive)
    scales = {size: scale for scale, (size, _) in KERNELS.items()}
    if not head.ndim == reduce.ndim == tail.ndim == 4 or reduce.shape[2] not in scales:
        shapes = ", ".join(f"{name} {tuple(tensors[name].shape)}" for name in decisive)
        raise UsageError(f"the shapes do not fit: {shapes}")
    return scales[reduce.shape[2]], head.shape[0], tail.shape[1] // max(head.shape[0], 1)


def _read(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Return the tensors of a file by name, and its metadata, which a file of ``torch.save`` does not have."""
    return read_weights(path) if path.suffix == ".safetensors" else (read_state_dict(path), {})
