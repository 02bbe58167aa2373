"""Guided colorization: the colours of a grey frame from another frame of its video."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from torch import Tensor, nn

from psal.data import davis
from psal.luminance import luminance
from psal.trained import PATCH_SIZE, build_colorizer

DISTANCES = (1, 3, 5, 10)  # frames between a test picture and its references, before and after
LOOK_DISTANCE = 5  # frames between a picture that is looked at and its reference


class ColorizeTask:
    """The paper's network on random pairs of frames of DAVIS.

    Args:
        data: DAVIS's folder.
        attention: name for :func:`psal.attentions.build_attention`.
        size: side of the pictures.
        seed: of the pairs.

    Raises:
        psal.data.davis.MissingDataError: if the folder is not DAVIS's.
        ValueError: if there is no such attention.
    """

    name = "colorize"

    def __init__(self, data: Path, attention: str, size: int, seed: int) -> None:
        self.settings: dict[str, Any] = {"attention": attention, "size": size, "patch_size": PATCH_SIZE}
        self._attention = attention
        self._pairs = davis.TrainingPairs(data, "train", size, seed)
        distant = davis.distant_pairs(data, "val", [LOOK_DISTANCE])
        self._looked_at = [_load(pair, size) for _, pair in distant[:2]]

    def build(self) -> nn.Module:
        return build_colorizer(self._attention)

    def examples(self, numbers: Sequence[int]) -> Sequence[Tensor]:
        pairs = [self._pairs[number] for number in numbers]
        return [torch.stack(pictures) for pictures in zip(*pairs, strict=True)]

    def loss(self, model: nn.Module, batch: Sequence[Tensor]) -> Tensor:
        frame, reference = batch
        return inner_error(model(grey_of(frame), reference), frame)

    def look(self, model: nn.Module) -> Image.Image:
        rows = []
        for frame, reference in self._looked_at:
            grey = grey_of(frame)
            colored = model(grey.to(next(model.parameters()).device), reference.to(next(model.parameters()).device))
            rows.append(torch.cat([grey.expand_as(frame), reference, colored.float().cpu(), frame], 3))
        pixels = torch.cat(rows, 2)[0].clamp(0, 1).mul(255).round().byte().permute(1, 2, 0)
        return Image.fromarray(pixels.numpy())

    def complaints(self) -> list[str]:
        return list(self._pairs.broken.values())


def grey_of(picture: Tensor) -> Tensor:
    """Luma ``(B, 1, H, W)`` of RGB ``(B, 3, H, W)``."""
    return torch.stack([luminance(x) for x in picture])


def inner_error(colored: Tensor, frame: Tensor) -> Tensor:
    """Mean square error of the pixels a patch away from the border."""
    inner = slice(PATCH_SIZE, -PATCH_SIZE)
    return (colored[..., inner, inner] - frame[..., inner, inner]).square().mean()


def _load(pair: davis.Pair, size: int) -> tuple[Tensor, Tensor]:
    return davis.load_square(pair.frame, size)[None], davis.load_square(pair.reference, size)[None]


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
