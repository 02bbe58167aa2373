"""Guided colorization: the colours of a grey frame from another frame of its video."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from torch import Tensor, nn

from psal.data import davis
from psal.luminance import luminance
from psal.models.weights import PATCH_SIZE, build_colorizer

DISTANCES = (1, 3, 5, 10)  # frames between a test picture and its references, before and after
LOOK_DISTANCES = (5, 3, 1)  # frames between a picture that is looked at and its reference: the first that there are
LOOK_ROWS = 2


class ColorizeTask:
    """The paper's network on random pairs of frames of DAVIS.

    Args:
        data: DAVIS's folder.
        attention: name for :func:`psal.models.attentions.build_attention`.
        size: side of the pictures.
        seed: of the pairs.

    Raises:
        psal.data.davis.MissingDataError: if the folder is not DAVIS's.
        ValueError: if there is no such attention.
    """

    name = "colorize"

    def __init__(self, data: Path, attention: str, size: int, seed: int) -> None:
        self._attention = attention
        self._pairs = davis.TrainingPairs(data, "train", size, seed)
        self._looked_at, self._broken = _to_look_at(data, size)
        self.settings: dict[str, Any] = {
            "attention": attention, "size": size, "patch_size": PATCH_SIZE, "frames": self._pairs.fingerprint
        }  # fmt: skip

    def build(self) -> nn.Module:
        return build_colorizer(self._attention)

    def example(self, number: int) -> Sequence[Tensor]:
        return [picture[None] for picture in self._pairs[number]]

    def loss(self, model: nn.Module, example: Sequence[Tensor]) -> Tensor:
        frame, reference = example
        return inner_error(model(grey_of(frame), reference), frame)

    def look(self, model: nn.Module) -> Image.Image | None:
        if not self._looked_at:
            return None
        rows, weight = [], next(model.parameters())
        for frame, reference in self._looked_at:
            grey = grey_of(frame)
            colored = model(grey.to(weight), reference.to(weight))
            rows.append(torch.cat([grey.expand_as(frame), reference, colored.float().cpu(), frame], 3))
        pixels = torch.cat(rows, 2)[0].clamp(0, 1).mul(255).round().byte().permute(1, 2, 0)
        return Image.fromarray(pixels.numpy())

    def complaints(self) -> list[str]:
        return [*self._broken, *self._pairs.broken.values()]


def grey_of(picture: Tensor) -> Tensor:
    """Luma ``(B, 1, H, W)`` of RGB ``(B, 3, H, W)``."""
    return torch.stack([luminance(x) for x in picture])


def inner_error(colored: Tensor, frame: Tensor) -> Tensor:
    """Mean square error of the pixels a patch away from the border."""
    inner = slice(PATCH_SIZE, -PATCH_SIZE)
    return (colored[..., inner, inner] - frame[..., inner, inner]).square().mean()


def _load(pair: davis.Pair, size: int) -> tuple[Tensor, Tensor]:
    return davis.load_square(pair.frame, size)[None], davis.load_square(pair.reference, size)[None]


def _to_look_at(data: Path, size: int) -> tuple[list[tuple[Tensor, Tensor]], list[str]]:
    """Pairs of the val split, as far as they can be read, and what is wrong with the others."""
    found: list[tuple[Tensor, Tensor]] = []
    broken: dict[str, None] = {}
    for _, pair in davis.distant_pairs(data, "val", LOOK_DISTANCES):
        if len(found) == LOOK_ROWS:
            break
        try:
            found.append(_load(pair, size))
        except davis.MissingDataError as error:
            broken[str(error)] = None
    return found, list(broken)


def errors_on_val(network: Callable[[Tensor, Tensor], Tensor], data: Path, size: int) -> dict[int, list[float]]:
    """Errors on the middle frames of the val split, by the distances of references that there are.

    Raises:
        psal.data.davis.MissingDataError: if the folder is not DAVIS's.
    """
    errors: dict[int, list[float]] = {distance: [] for distance in DISTANCES}
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        for distance, pair in davis.distant_pairs(data, "val", DISTANCES):
            frame, reference = _load(pair, size)
            errors[distance].append(inner_error(network(grey_of(frame), reference), frame).item())
    if not any(errors.values()):
        raise davis.MissingDataError(f"{data} has no sequence of two frames or more in its val split")
    return {distance: found for distance, found in errors.items() if found}
