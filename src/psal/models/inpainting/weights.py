"""Trained inpainting networks: from this project's files, and from those of generative-inpainting-pytorch."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from psal.errors import UsageError
from psal.models.inpainting.attentions import build_inpainting_attention
from psal.models.inpainting.generator import Generator
from psal.models.weights import read_weights

MAX_LISTED = 4  # names in an error message

_PLAIN = ("conv1", "conv2_downsample", "conv3", "conv4_downsample", "conv5", "conv6")
_ATROUS = ("conv7_atrous", "conv8_atrous", "conv9_atrous", "conv10_atrous")
_DECODER = ("0.0", "1.0", "3.0", "4.0", "6.0", "7.0", "8")  # positions of the convolutions between the upsamplings


def _published_names() -> dict[str, str]:
    """Names of the convolutions in daa233/generative-inpainting-pytorch, by the names they have here."""
    names: dict[str, str] = {}
    for stage, published in (("coarse", "coarse_generator"), ("refinement", "fine_generator")):
        names |= {f"{stage}.encoder.{at}.0": f"{published}.{name}" for at, name in enumerate(_PLAIN)}
        names |= {f"{stage}.dilated.{at}.0": f"{published}.{name}" for at, name in enumerate(_ATROUS)}
        decoder = "conv" if stage == "coarse" else "allconv"
        names |= {
            f"{stage}.decoder.{at}": f"{published}.{decoder}{number}" for number, at in enumerate(_DECODER, start=11)
        }
    branch, published = "refinement.attention_branch", "fine_generator.pm"
    names |= {f"{branch}.encoder.{at}.0": f"{published}{name}" for at, name in enumerate(_PLAIN)}
    return names | {f"{branch}.after.{at}.0": f"{published}conv{9 + at}" for at in range(2)}


PUBLISHED_NAMES = {
    f"{name}.{part}": f"{published}.conv.{part}"
    for name, published in _published_names().items()
    for part in ("weight", "bias")
}


def build_generator(attention: str, width: int, seed: int | None = None) -> Generator:
    """Build an untrained network.

    Args:
        attention: name for :func:`psal.models.inpainting.attentions.build_inpainting_attention`; with "none" the
            network has no attention branch.
        width: channels of the first layer.
        seed: seed of the network's searches; None draws one from torch's generator in each call.

    Raises:
        UsageError: if the name is unknown.
    """
    layer = build_inpainting_attention(attention, seed)
    return Generator(None if attention == "none" else layer, width)


def load_generator(weights: str | Path, *, seed: int | None = None) -> tuple[Generator, dict[str, str]]:
    """Load an inpainting network.

    Args:
        weights: a .safetensors file that ``psal train inpaint`` wrote, or a state dict such as ``gen_00430000.pt`` that
            daa233/generative-inpainting-pytorch wrote.
        seed: seed of the network's searches; None draws one from torch's generator in each call.

    Returns:
        The network in eval mode, with the attention it was trained with, and the settings it was trained with;
        those of a state dict are attention and width alone.

    Raises:
        UsageError: if the file cannot be read, or does not hold the weights of this network. The message says which
            tensors are missing, left over or of another shape.
    """
    weights = Path(weights)
    if weights.suffix == ".safetensors":
        tensors, settings = read_weights(weights)
        if settings.get("task") != "inpaint":
            raise UsageError(f"{weights} was not written by psal train inpaint")
    else:
        tensors = _renamed(_read_state_dict(weights))
        settings = {"attention": "contextual", "width": str(_width_of(tensors))}
    try:
        network = build_generator(settings["attention"], int(settings["width"]), seed)
    except (KeyError, ValueError) as error:
        raise UsageError(f"{weights} does not say which network it is of: {error}") from None
    _check_fits(weights, tensors, network.state_dict())
    network.load_state_dict(tensors)
    return network.eval(), settings


def _read_state_dict(path: Path) -> dict[str, Tensor]:
    try:
        content: Any = torch.load(path, map_location="cpu", weights_only=True)
    except MemoryError:
        raise
    except Exception as error:  # unpickling arbitrary bytes raises errors of any kind
        raise UsageError(f"{path} cannot be read as weights: {' '.join(str(error).split())[:200]}") from None
    if not isinstance(content, Mapping) or not all(isinstance(x, Tensor) for x in content.values()):
        raise UsageError(f"{path} is not a state dict: it must map names to tensors")
    return {str(name): x for name, x in content.items()}


def _renamed(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Give published tensors the names they have here; others keep theirs, and are reported as left over."""
    ours = {published: name for name, published in PUBLISHED_NAMES.items()}
    return {ours.get(name, name): x for name, x in tensors.items()}


def _width_of(tensors: dict[str, Tensor]) -> int:
    first = tensors.get("coarse.encoder.0.0.bias")
    return 32 if first is None else first.numel()


def _check_fits(path: Path, found: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> None:
    published = {name: PUBLISHED_NAMES[name] if path.suffix != ".safetensors" else name for name in expected}
    problems = [
        _listed("missing", (published[name] for name in expected if name not in found)),
        _listed("left over", (name for name in found if name not in expected)),
        _listed(
            "of another shape",
            (
                f"{published[name]} {tuple(found[name].shape)}, not {tuple(x.shape)}"
                for name, x in expected.items()
                if name in found and found[name].shape != x.shape
            ),
        ),
    ]
    if any(problems):
        listed = "; ".join(filter(None, problems))
        raise UsageError(f"{path} does not hold the weights of the inpainting network: {listed}")


def _listed(what: str, names: Iterable[str]) -> str:
    listed = list(names)
    if not listed:
        return ""
    more = f" and {len(listed) - MAX_LISTED} more" if len(listed) > MAX_LISTED else ""
    return f"{what}: {', '.join(listed[:MAX_LISTED])}{more}"
