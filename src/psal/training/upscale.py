"""Super-resolution: enlarge photographs that were downscaled."""

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from PIL import Image
from torch import Tensor, nn

from psal.data.degradation import downscale
from psal.data.downscaled_crops import DownscaledCrops
from psal.data.image_folder import MissingDataError, load_pixels, to_picture
from psal.errors import UsageError
from psal.measure.picture_quality import psnr_of_luma, ssim_of_luma
from psal.models import CSNLN
from psal.models.csnln.weights import read_upscaler
from psal.models.weights import check_names

PREVIEWS = range(2**31, 2**31 + 3)  # examples that no training run reaches


@dataclass(frozen=True)
class Architecture:
    """Arguments of :class:`psal.models.CSNLN`."""

    scale: int
    width: int
    depth: int
    cross_scale: str
    in_scale: str
    residual: bool = True

    def build(self) -> CSNLN:
        """Build the untrained network."""
        return CSNLN(**asdict(self))


class UpscaleTask:
    """The network with cross-scale attention on random crops of photographs, with the mean absolute error as loss.

    Args:
        data: folder of photographs.
        architecture: the network.
        size: side of the small crops, in pixels.
        seed: of the random crops.
        start: file of weights to start from; see :func:`psal.models.csnln.weights.read_upscaler`. None starts from
            random ones.

    Raises:
        psal.data.image_folder.MissingDataError: if the folder has no pictures.
        UsageError: if the file does not hold the weights of such a network.
        ValueError: if the network cannot be built.
    """

    name = "upscale"

    def __init__(self, data: Path, architecture: Architecture, size: int, seed: int, start: Path | None = None) -> None:
        self._architecture = architecture
        self._start = start
        self.build()  # fails before anything is written
        self._crops = DownscaledCrops(data, architecture.scale, size, seed)
        self.settings: dict[str, Any] = {
            **asdict(architecture), "size": size, "photographs": self._crops.fingerprint,
            "start": None if start is None else hashlib.sha256(start.read_bytes()).hexdigest()[:16],
        }  # fmt: skip

    def build(self) -> nn.Module:
        network = self._architecture.build()
        if self._start is not None:
            trained = read_upscaler(self._start)
            try:
                check_names(trained.tensors, network.state_dict())
            except UsageError as error:
                raise UsageError(f"{self._start} does not fit the network: {error}") from None
            if trained.residual != self._architecture.residual:
                option = "--residual" if trained.residual else "--no-residual"
                raise UsageError(f"{self._start} was trained with {option}: give {option} here, too")
            network.load_state_dict(trained.tensors)
        return network

    def example(self, number: int) -> Sequence[Tensor]:
        return [picture[None] for picture in self._crops[number]]

    def loss(self, model: nn.Module, example: Sequence[Tensor]) -> Tensor:
        small, large = example
        return F.l1_loss(model(small), large)

    def look(self, model: nn.Module) -> Image.Image | None:
        """Show crops enlarged bicubically, by the network, and as they were."""
        weight = next(model.parameters())
        rows = []
        for small, large in (self._crops[number] for number in PREVIEWS):
            enlarged = model(small[None].to(weight)).float().cpu()[0]
            rows.append(torch.cat([bicubic(small, self._architecture.scale), enlarged, large], 2))
        return to_picture(torch.cat(rows, 1))

    def complaints(self) -> list[str]:
        return list(self._crops.broken.values())


def bicubic(small: Tensor, scale: int) -> Tensor:
    """Enlarge ``(3, h, w)`` bicubically, by the kernel that downscaled it."""
    size = scale * small.shape[1], scale * small.shape[2]
    return F.interpolate(small[None], size, mode="bicubic", antialias=True)[0]


class Quality(NamedTuple):
    """PSNR in dB and SSIM of Y, without a border of ``scale`` pixels."""

    psnr: float
    ssim: float


def load_pair(path: Path, scale: int, crop: int | None = None) -> tuple[Tensor, Tensor]:
    """Load a test picture, downscaled, and the original that the enlarged one is compared with.

    Args:
        path: the picture. Rows and columns that are no multiple of the scale are cut off, as benchmarks do.
        scale: factor per side.
        crop: side of the square in the middle of the downscaled picture that is used; None for all of it.

    Returns:
        ``(3, h, w)`` in 0..1, and uint8 ``(3, scale · h, scale · w)``.

    Raises:
        psal.data.image_folder.MissingDataError: if the file cannot be read, or has not a pixel.
    """
    original = load_pixels(path)
    height, width = (side // scale for side in original.shape[1:])
    if not height or not width:
        raise MissingDataError(f"{path} has fewer than {scale} × {scale} pixels")
    original = original[:, : scale * height, : scale * width]
    small = downscale(original, scale)
    if crop is not None:
        top, left = max(height - crop, 0) // 2, max(width - crop, 0) // 2
        small = small[:, top : top + crop, left : left + crop]
        original = original[:, scale * top :, scale * left :][:, : scale * small.shape[1], : scale * small.shape[2]]
    return small.float() / 255, original


def quality(enlarged: Tensor, original: Tensor, scale: int) -> Quality:
    """Compare an enlarged picture ``(3, H, W)`` in 0..1 with its original, uint8, after rounding to 8 bits."""
    pixels = enlarged.clamp(0, 1).mul(255).round().byte()
    return Quality(psnr_of_luma(pixels, original, scale), ssim_of_luma(pixels, original, scale))
