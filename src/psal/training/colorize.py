"""Guided colorization: color a gray frame from another frame of its video."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from torch import Tensor, nn

from psal.data import davis
from psal.data.image_folder import MissingDataError, to_picture
from psal.models.colorizer_weights import PATCH_SIZE, build_colorizer

DISTANCES = (1, 3, 5, 10)  # frames between a test frame and its references, before and after it
PREVIEW_DISTANCES = (5, 3, 1)  # frames between a previewed frame and its reference; the first that exist are used
PREVIEW_ROWS = 2


class ColorizeTask:
    """The paper's network on random pairs of frames of DAVIS.

    Args:
        data: folder of the DAVIS data set.
        attention: name for :func:`psal.models.attentions.build_attention`.
        size: side of the square training images, in pixels.
        seed: seed of the random pairs.

    Raises:
        psal.data.image_folder.MissingDataError: if the folder is not a DAVIS data set.
        ValueError: if the attention is unknown.
    """

    name = "colorize"

    def __init__(self, data: Path, attention: str, size: int, seed: int) -> None:
        self._attention = attention
        self._pairs = davis.TrainingPairs(data, "training", size, seed)
        self._previewed, self._broken = _preview_pairs(data, size)
        self.settings: dict[str, Any] = {
            "attention": attention, "size": size, "patch_size": PATCH_SIZE, "frames": self._pairs.fingerprint
        }  # fmt: skip

    def build(self) -> nn.Module:
        return build_colorizer(self._attention)

    def example(self, number: int) -> Sequence[Tensor]:
        return [picture[None] for picture in self._pairs[number]]

    def loss(self, model: nn.Module, example: Sequence[Tensor]) -> Tensor:
        frame, reference = example
        return inner_error(model(gray_of(frame), reference), frame)

    def look(self, model: nn.Module) -> Image.Image | None:
        if not self._previewed:
            return None
        rows, weight = [], next(model.parameters())
        for frame, reference in self._previewed:
            gray = gray_of(frame)
            colored = model(gray.to(weight), reference.to(weight))
            rows.append(torch.cat([gray.expand_as(frame), reference, colored.float().cpu(), frame], 3))
        return to_picture(torch.cat(rows, 2)[0])

    def complaints(self) -> list[str]:
        return [*self._broken, *self._pairs.broken.values()]


def gray_of(image: Tensor) -> Tensor:
    """Return the mean ``(B, 1, H, W)`` of RGB ``(B, 3, H, W)``, which is what the paper's authors call gray."""
    return image.mean(1, keepdim=True)


def inner_error(colored: Tensor, frame: Tensor) -> Tensor:
    """Return the mean squared error of all pixels that are a patch away from the border."""
    inner = slice(PATCH_SIZE, -PATCH_SIZE)
    return (colored[..., inner, inner] - frame[..., inner, inner]).square().mean()


def load_frames(pair: davis.Pair, size: int) -> tuple[Tensor, Tensor]:
    """Load a frame and its reference, each squeezed to a square ``(1, 3, size, size)``.

    Raises:
        psal.data.image_folder.MissingDataError: if a file cannot be read.
    """
    return davis.load_resized(pair.frame, size, size)[None], davis.load_resized(pair.reference, size, size)[None]


def _preview_pairs(data: Path, size: int) -> tuple[list[tuple[Tensor, Tensor]], list[str]]:
    """Load the first readable pairs of the val split; also return an error message for each unreadable file."""
    found: list[tuple[Tensor, Tensor]] = []
    broken: dict[str, None] = {}
    for _, pair in davis.distant_pairs(data, "val", PREVIEW_DISTANCES):
        if len(found) == PREVIEW_ROWS:
            break
        try:
            found.append(load_frames(pair, size))
        except MissingDataError as error:
            broken[str(error)] = None
    return found, list(broken)


def errors_on_split(
    network: Callable[[Tensor, Tensor], Tensor], data: Path, split: str, size: int, device: str = "cpu"
) -> dict[int, list[float]]:
    """Return the errors on the middle frames of a split's sequences, by the distance of the reference in frames.

    Args:
        network: called with a gray frame and its reference.
        data: folder of the DAVIS data set.
        split: "val" or "holdout", neither of which is trained on.
        size: side of the square frames, in pixels.
        device: where the network is.

    Raises:
        psal.data.image_folder.MissingDataError: if the folder is not a DAVIS data set.
    """
    errors: dict[int, list[float]] = {distance: [] for distance in DISTANCES}
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        for distance, pair in davis.distant_pairs(data, split, DISTANCES):
            frame, reference = (x.to(device) for x in load_frames(pair, size))
            errors[distance].append(inner_error(network(gray_of(frame), reference), frame).item())
    if not any(errors.values()):
        raise MissingDataError(f"{data} has no sequence with two or more frames in its {split} split")
    return {distance: found for distance, found in errors.items() if found}
