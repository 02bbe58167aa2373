"""Trained inpainting networks: from this project's files, and from those of generative-inpainting-pytorch."""

from pathlib import Path

from torch import Tensor

from psal.errors import UsageError
from psal.models.inpainting.attentions import build_inpainting_attention
from psal.models.inpainting.generator import WIDTH, Generator
from psal.models.weights import check_names, read_state_dict, read_weights

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
        tensors = _renamed(read_state_dict(weights))
        settings = {"attention": "contextual", "width": str(_width_of(tensors))}
    try:
        network = build_generator(settings["attention"], int(settings["width"]), seed)
    except (KeyError, ValueError) as error:
        raise UsageError(f"{weights} does not say which network it is of: {error}") from None
    try:
        check_names(tensors, network.state_dict(), None if weights.suffix == ".safetensors" else PUBLISHED_NAMES)
    except UsageError as error:
        raise UsageError(f"{weights} does not hold the weights of the inpainting network: {error}") from None
    network.load_state_dict(tensors)
    return network.eval(), settings


def _renamed(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Give published tensors the names they have here; others keep theirs, and are reported as left over."""
    ours = {published: name for name, published in PUBLISHED_NAMES.items()}
    return {ours.get(name, name): x for name, x in tensors.items()}


def _width_of(tensors: dict[str, Tensor]) -> int:
    first = tensors.get("coarse.encoder.0.0.bias")
    return WIDTH if first is None else first.numel()
