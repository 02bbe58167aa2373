"""Color a gray picture like a reference."""

from typing import Any

import torch
from torch import Tensor

from psal.checks import check_word
from psal.devices import choose_device
from psal.editing.colorize_hints import Strokes, follow_hints, open_strokes
from psal.editing.colorize_network import predict_chroma
from psal.editing.colorize_patches import match_chroma
from psal.editing.colorize_trust import trust
from psal.editing.registry import MODELS
from psal.io.pictures import ImageLike, open_picture
from psal.luminance import join, luminance
from psal.progress import Progress
from psal.seeds import add_to_seed, check_seed, draw_seed

References = ImageLike | list[ImageLike] | tuple[ImageLike, ...]

SEED_OF_TRUST = 1000  # beyond those of the levels


def colorize(
    image: ImageLike,
    reference: References,
    *,
    hints: ImageLike | None = None,
    fade: bool = True,
    model: str = "patches",
    seed: int | None = None,
    device: str | torch.device = "cpu",
    progress: Progress | None = None,
) -> Any:
    """Give a picture the colors of a reference that shows something similar.

    The luminance, Y = 0.299 R + 0.587 G + 0.114 B of the gamma-encoded values, is kept: in 8-bit pictures, that of the
    result rounds to the given value. The two pictures may differ in size and exposure.

    Args:
        image: gray picture, or a color picture whose luminance is used: path, :class:`psal.Photo`, Pillow image, array
            or tensor.
        reference: color picture, any of these kinds, or a list of several. Alpha is ignored.
        hints: the picture with colored strokes painted over it, or strokes on a transparent layer of the same size.
            What looks alike near a stroke gets its color.
        fade: make the colors paler, down to gray, the less the references show of what the picture shows. Hints keep
            their colors.
        model: how colors are found: "patches" compares luminance patches from coarse to fine, "network" runs the
            paper's trained network, with a single reference. On video frames "patches" has the lower error.
        seed: of the search; None draws one from torch's generator.
        device: "cpu", "cuda", "cuda:1" and so on, or "auto" for a CUDA or ROCm device if there is one.
        progress: called with the fraction of the work that is done, 0..1.

    Returns:
        The colored picture, of the kind and size of ``image`` (a :class:`psal.Photo` for a path), always RGB, with the
        alpha of ``image``.

    Raises:
        ValueError, TypeError: if an argument is not as described.

    >>> colorize(torch.rand(1, 20, 30), torch.rand(3, 24, 17)).shape
    torch.Size([3, 20, 30])
    """
    check_seed(seed)
    check_word("model", model, MODELS)
    chosen = choose_device(device)
    picture = open_picture(image)
    references = [colors.to(chosen) for colors in _open_references(reference)]
    strokes = None if hints is None else Strokes(*(x.to(chosen) for x in open_strokes(hints, picture)))
    luma, drawn = luminance(picture.color.to(chosen)), int(draw_seed(seed))
    if model == "patches":
        found = match_chroma(luma, references, drawn, progress)
    elif len(references) > 1:
        raise ValueError(f"model='network' takes one reference, got {len(references)}: give one, or model='patches'")
    else:
        found = predict_chroma(luma, references[0], drawn, progress)
    if fade and (share := trust(luma, references, add_to_seed(drawn, SEED_OF_TRUST))) < 1:
        found *= share
    if strokes:
        found = follow_hints(found, luma, strokes)
    return picture.restore(join(luma, found))


def _open_references(reference: References) -> list[Tensor]:
    """Colors ``[3, h, w]`` of one reference, or of each of several."""
    if not isinstance(reference, list | tuple):
        named = [("reference", reference)]
    elif not reference:
        raise ValueError("reference must be one color picture or several, got an empty list")
    else:
        named = [(f"reference[{number}]", given) for number, given in enumerate(reference)]
    found = []
    for name, given in named:
        color = open_picture(given, name).color
        if len(color) == 1:
            raise ValueError(f"{name} must be a color picture, got a gray one")
        found.append(color)
    return found
