"""Color a gray picture like a reference."""

from typing import Any

import torch

from psal.checks import check_word
from psal.devices import choose_device
from psal.editing.colorize_network import predict_chroma
from psal.editing.colorize_patches import match_chroma
from psal.editing.registry import MODELS
from psal.io.pictures import ImageLike, open_picture
from psal.luminance import join, luminance
from psal.progress import Progress
from psal.seeds import check_seed, draw_seed


def colorize(
    image: ImageLike,
    reference: ImageLike,
    *,
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
        reference: color picture, any of these kinds. Its alpha is ignored.
        model: how colors are found: "patches" compares luminance patches from coarse to fine, "network" runs the
            paper's trained network. On video frames "patches" has the lower error.
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
    picture, colors = open_picture(image), open_picture(reference, "reference").color.to(chosen)
    if len(colors) == 1:
        raise ValueError("reference must be a color picture, got a gray one")
    luma = luminance(picture.color.to(chosen))
    find_chroma = match_chroma if model == "patches" else predict_chroma
    return picture.restore(join(luma, find_chroma(luma, colors, int(draw_seed(seed)), progress)))
