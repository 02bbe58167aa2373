"""The colorization network: untrained, from a file of weights, or the one that comes with the package."""

from importlib.resources import files
from pathlib import Path

from torch import nn

from psal.errors import UsageError
from psal.models import Colorizer
from psal.models.attentions import build_attention
from psal.models.colorizer import CHANNELS
from psal.models.weights import read_weights

PATCH_SIZE = 7
# Trained by psal train colorize --data DAVIS --attention psal-aggregate --size 128 --iterations 8000 --out RUN
COLORIZER = Path(str(files("psal.models"))) / "colorizer.safetensors"


def build_colorizer(attention: str, seed: int | None = None) -> Colorizer:
    """Build an untrained network around the attention layer of that name; the seed is the layer's."""
    return Colorizer(build_attention(attention, channels=CHANNELS, patch_size=PATCH_SIZE, seed=seed))


def load_colorizer(weights: Path = COLORIZER, seed: int | None = None) -> tuple[nn.Module, dict[str, str]]:
    """Load a network from a file that ``psal train colorize`` wrote.

    Args:
        weights: path of the file.
        seed: seed of the network's searches; None draws one from torch's generator in each call.

    Returns:
        The network in eval mode, and the settings it was trained with.

    Raises:
        UsageError: if the file does not hold the weights of such a network.
    """
    tensors, settings = read_weights(weights)
    if settings.get("task") != "colorize":
        raise UsageError(f"{weights} was not written by psal train colorize")
    try:
        network = build_colorizer(settings["attention"], seed)
        network.load_state_dict(tensors)
    except (KeyError, ValueError, RuntimeError) as error:
        raise UsageError(f"{weights} does not hold the weights of a colorizer: {error}") from None
    return network.eval(), settings
