"""Pictures as people have them (files, Pillow images, arrays, tensors) as the tensors that the editing works on."""

import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from PIL import Image as PillowImage
from torch import Tensor

from psal.io.files import pillow_pixels, read_picture_file

Image = str | os.PathLike[str] | PillowImage.Image | NDArray[Any] | Tensor
Progress = Callable[[float], None]  # called with the share that is done, 0..1

LARGEST_VALUE = {torch.uint8: 255, torch.uint16: 65535}
FLOAT_TYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
# Soft edges leave less than a hundredth of a mask's pixels in between, a wide blur some; photographs leave more.
ODD_DISTANCE, ODD_SHARE = 0.25, 0.1


@dataclass(frozen=True)
class _Layout(ABC):
    """The kind of picture that came in, and how to make another of it."""

    dtype: torch.dtype

    @abstractmethod
    def restore(self, channels: Tensor) -> Any:
        """Channels ``[C, H, W]``, colour and then alpha, clamped to 0..1, as the kind of picture that came in."""


@dataclass(frozen=True)
class Picture:
    """A picture to compute with, that knows what it was.

    Attributes:
        color: float32 ``[C, H, W]``, 0..1, C is 1 (grey) or 3.
        alpha: float32 ``[1, H, W]``, 0..1, or None.
    """

    color: Tensor
    alpha: Tensor | None
    _layout: _Layout

    def give_back(self, color: Tensor, alpha: Tensor | None = None) -> Any:
        """Make a picture of the kind, depth and layout that came in; 8- and 16-bit values stay bit for bit.

        Args:
            color: ``[C, H, W]``, C is 1 or 3, of any size; it is clamped to 0..1.
            alpha: ``[1, H, W]``; None is the picture's own, resized where the size differs.

        Returns:
            A Pillow image for a file or a Pillow image; an array or a tensor otherwise.

        >>> picture = open_picture(np.zeros((8, 9), np.uint8))
        >>> picture.give_back(torch.rand(3, 16, 18)).shape
        (16, 18, 3)
        """
        color = color.detach().to("cpu", torch.float32)
        if alpha is None:
            alpha = self.alpha
        if alpha is None:
            return self._layout.restore(color)
        alpha = alpha.detach().to("cpu", torch.float32)
        if alpha.shape[1:] != color.shape[1:]:
            alpha = F.interpolate(alpha[None], size=color.shape[1:], mode="bicubic", antialias=True)[0]
        return self._layout.restore(torch.cat([color, alpha]))


def open_picture(image: Image, name: str = "image") -> Picture:
    """Take a picture in.

    Args:
        image: a path; a Pillow image; an array ``(H, W)`` or ``(H, W, C)``; a tensor ``(C, H, W)`` or
            ``(1, C, H, W)``. C is 1 (grey), 2 (grey and alpha), 3 (RGB) or 4 (RGBA). Values are uint8, uint16 or
            floats in 0..1. A file is turned upright as its orientation tag says; everything else is taken as it is.
        name: what error messages call it.

    Returns:
        :class:`Picture`

    Raises:
        ValueError, TypeError: if it is not such a picture.
        OSError: if a file cannot be read.

    >>> open_picture(torch.rand(4, 8, 9)).color.shape
    torch.Size([3, 8, 9])
    """
    channels, layout = _take_in(image, name)
    colors = 1 if len(channels) < 3 else 3
    return Picture(channels[:colors], channels[colors:] if len(channels) > colors else None, layout)


def open_mask(mask: Image, size: tuple[int, int], name: str = "mask") -> Tensor:
    """Take in a mask of the hole.

    Args:
        mask: white or True where the hole is, black or False elsewhere; halfway up counts as white. As in
            :func:`open_picture`, and bool arrays and tensors, also of shape ``(H, W)``. In a mask of whole numbers
            with no value above 1, the ones are the hole. What its alpha hides is no hole. Another colour may take
            the place of white; a picture of many colours or greys is no mask, unless its values are floats.
        size: (H, W) of the picture.
        name: what error messages call it; a file is called by its own name.

    Returns:
        bool ``[H, W]``, True in the hole.

    Raises:
        ValueError, TypeError: if it is not such a mask.
        OSError: if a file cannot be read.

    >>> open_mask(np.eye(7, dtype=bool), (7, 7)).sum()
    tensor(7)
    """
    if isinstance(mask, np.ndarray) and mask.dtype == np.bool_:
        mask = mask.astype(np.uint8)
    if isinstance(mask, Tensor):
        mask = mask.to(torch.uint8) if mask.dtype == torch.bool else mask
        mask = mask[None] if mask.ndim == 2 else mask
    if isinstance(mask, str | os.PathLike):
        name = os.fspath(mask)
    picture = open_picture(mask, name)
    bright = picture.color.amax(0)  # [H, W]; a hole painted in a colour counts too
    if tuple(bright.shape) != tuple(size):
        raise ValueError(
            f"{name} is {bright.shape[1]} × {bright.shape[0]} pixels and the picture {size[1]} × {size[0]}: "
            "they must be of one size"
        )
    largest = LARGEST_VALUE.get(picture._layout.dtype, 1)
    scale = torch.ones(()) if round(bright.max().item() * largest) != 1 else torch.tensor(float(largest))
    if picture.alpha is not None:
        scale = scale * picture.alpha[0]
    hole = bright * scale >= 0.5
    if largest > 1 and (share := _odd_share(picture.color * scale, hole)) > ODD_SHARE:
        raise ValueError(
            f"{name} is no mask, as {share:.0%} of its pixels are neither black nor of one other colour: "
            "make it white where the hole is, black elsewhere"
        )
    return hole


def _odd_share(color: Tensor, hole: Tensor) -> float:
    """The share of a mask ``[C, H, W]`` that is neither nearly black nor nearly of the hole's colour."""
    if not hole.any():
        return (color.amax(0) > ODD_DISTANCE).float().mean().item()
    odd = torch.zeros_like(hole)
    for channel in color:
        odd |= (channel - channel[hole].median() * hole).abs_() > ODD_DISTANCE
    return odd.float().mean().item()


def _take_in(image: Image, name: str) -> tuple[Tensor, _Layout]:
    """Channels float32 ``[C, H, W]`` in 0..1, C 1 to 4, and the layout."""
    if isinstance(image, str | os.PathLike):
        stored = read_picture_file(image)
        values = _channels_first(stored.pixels)
        return _scaled(values, name), _PillowLayout(values.dtype, stored.info())
    if isinstance(image, PillowImage.Image):
        values = _channels_first(pillow_pixels(image, name))
        kept: dict[str, Any] = {key: image.info[key] for key in ("exif", "icc_profile", "dpi") if key in image.info}
        return _scaled(values, name), _PillowLayout(values.dtype, kept)
    if isinstance(image, np.ndarray):
        if image.size == 0:
            raise ValueError(f"{name} must have at least one pixel, got shape {image.shape}")
        if image.ndim not in (2, 3) or (image.ndim == 3 and not 1 <= image.shape[2] <= 4):
            raise ValueError(f"{name} must be an array (H, W) or (H, W, C) with 1 to 4 channels, got {image.shape}")
        if image.dtype.kind not in "uf" or image.dtype.itemsize > (2 if image.dtype.kind == "u" else 8):
            raise TypeError(f"{name} must be uint8, uint16 or float, got {image.dtype}: convert it first")
        values = _channels_first(image)
        return _scaled(values, name), _ArrayLayout(values.dtype, image.dtype, image.ndim == 2)
    if isinstance(image, Tensor):
        if image.numel() == 0:
            raise ValueError(f"{name} must have at least one pixel, got shape {tuple(image.shape)}")
        batched = image.ndim == 4
        if image.ndim not in (3, 4) or (batched and len(image) != 1) or not 1 <= image.shape[-3] <= 4:
            raise ValueError(
                f"{name} must be a tensor (C, H, W) or (1, C, H, W) with 1 to 4 channels, got {tuple(image.shape)}"
            )
        if image.dtype not in LARGEST_VALUE and image.dtype not in FLOAT_TYPES:
            raise TypeError(f"{name} must be uint8, uint16 or float, got {image.dtype}: convert it first")
        values = image.detach().cpu()
        layout = _TensorLayout(values.dtype, image.device, batched)
        return _scaled(values[0] if batched else values, name), layout
    raise TypeError(f"{name} must be a path, a Pillow image, an array or a tensor, got {type(image).__name__}")


@dataclass(frozen=True)
class _PillowLayout(_Layout):
    info: dict[str, Any]

    def restore(self, channels: Tensor) -> PillowImage.Image:
        dtype = self.dtype
        if dtype == torch.uint16 and len(channels) > 1:
            dtype = torch.uint8
            warnings.warn(
                "a Pillow image cannot hold 16-bit colour, so this one is 8 bit: "
                "give an array or a tensor, or use the command line, to keep 16 bit",
                stacklevel=4,  # who called the editing function
            )
        image = PillowImage.fromarray(_channels_last(_unscaled(channels, dtype)))
        image.info.update(self.info)
        return image


@dataclass(frozen=True)
class _ArrayLayout(_Layout):
    given: np.dtype[Any]  # may be of the other byte order
    flat: bool

    def restore(self, channels: Tensor) -> NDArray[Any]:
        pixels = _channels_last(_unscaled(channels, self.dtype)).astype(self.given, copy=False)
        return pixels if self.flat or pixels.ndim == 3 else pixels[..., None]


@dataclass(frozen=True)
class _TensorLayout(_Layout):
    device: torch.device
    batched: bool

    def restore(self, channels: Tensor) -> Tensor:
        values = _unscaled(channels, self.dtype).to(self.device)
        return values[None] if self.batched else values


def _channels_first(pixels: NDArray[Any]) -> Tensor:
    """``(H, W)`` or ``(H, W, C)`` as ``[C, H, W]``."""
    native = pixels.astype(pixels.dtype.newbyteorder("="), copy=True)
    return torch.from_numpy(native.reshape(*native.shape[:2], -1)).movedim(2, 0)


def _channels_last(values: Tensor) -> NDArray[Any]:
    """``[C, H, W]`` as ``(H, W, C)``, or ``(H, W)`` if there is one channel."""
    pixels = values.movedim(0, 2).contiguous().numpy()
    return pixels[..., 0] if pixels.shape[2] == 1 else pixels


def _scaled(values: Tensor, name: str) -> Tensor:
    """``[C, H, W]`` as float32 in 0..1, one channel after the other to save memory."""
    largest = LARGEST_VALUE.get(values.dtype, 1)
    if values.dtype not in LARGEST_VALUE:
        low, high = (x.item() for x in values.aminmax())
        if not (low >= 0 and high <= 1):  # catches NaN too
            raise ValueError(
                f"{name} must have float values in 0..1, got {low:.4g} to {high:.4g}: scale or clamp it first"
            )
    scaled = torch.empty(values.shape, dtype=torch.float32)
    for channel, out in zip(values, scaled, strict=True):
        out.copy_(channel).div_(largest)
    return scaled


def _unscaled(channels: Tensor, dtype: torch.dtype) -> Tensor:
    """The other way round."""
    values = torch.empty(channels.shape, dtype=dtype)
    for channel, out in zip(channels, values, strict=True):
        clamped = channel.clamp(0, 1)
        if dtype in LARGEST_VALUE:  # a float32 has 24 bits: what was a whole number comes back as the same one
            clamped = clamped.mul_(LARGEST_VALUE[dtype]).round_().to(torch.int32)
        out.copy_(clamped)
    return values
