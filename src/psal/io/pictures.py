"""Any kind of picture (path, photo, Pillow image, array, tensor) as float tensors, and back to the same kind."""

import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from psal.checks import FLOAT_TYPES
from psal.io.decode import pillow_pixels
from psal.io.formats import to_uint8
from psal.io.photo import Photo

ImageLike = str | os.PathLike[str] | Photo | Image.Image | NDArray[Any] | Tensor

MAX_VALUE = {torch.uint8: 255, torch.uint16: 65535}
PILLOW_METADATA = ("exif", "icc_profile", "dpi", "xmp")

Restore = Callable[[Tensor], Any]  # values [C, H, W] of the picture's dtype -> a picture of the kind that was opened


@dataclass(frozen=True)
class Picture:
    """Color and alpha of a picture, which can make another picture of the kind that was opened.

    Attributes:
        color: float32 ``[C, H, W]``, 0..1; C is 1 (gray) or 3 (RGB).
        alpha: float32 ``[1, H, W]``, 0..1, or None.
        dtype: type of the values that were opened.
    """

    color: Tensor
    alpha: Tensor | None
    dtype: torch.dtype
    _restore: Restore

    def restore(self, color: Tensor, alpha: Tensor | None = None) -> Any:
        """Make a picture of the kind, depth and layout that was opened; unchanged values stay bit for bit.

        Args:
            color: ``[C, H, W]``, C is 1 or 3, of any size; clamped to 0..1.
            alpha: ``[1, H, W]``; None takes the picture's own, resized to the size of ``color``.

        Returns:
            A :class:`Photo` for a path or a photo; otherwise a Pillow image, an array or a tensor, as was opened.

        >>> picture = open_picture(np.zeros((8, 9), np.uint8))
        >>> picture.restore(torch.rand(3, 16, 18)).shape
        (16, 18, 3)
        """
        color = color.detach().to("cpu", torch.float32)
        if alpha is None:
            alpha = self.alpha
        if alpha is None:
            return self._restore(_from_float(color, self.dtype))
        alpha = alpha.detach().to("cpu", torch.float32)
        if alpha.shape[1:] != color.shape[1:]:
            alpha = F.interpolate(alpha[None], size=color.shape[1:], mode="bicubic", antialias=True)[0]
        return self._restore(_from_float(torch.cat([color, alpha]), self.dtype))


@dataclass(frozen=True)
class RawPicture:
    """Values of a picture as they were opened: for an edit of a small part, which need not convert the rest.

    Attributes:
        values: ``[C, H, W]``; C is 1 (gray), 2 (gray and alpha), 3 (RGB) or 4 (RGBA).
    """

    values: Tensor
    _restore: Restore

    @property
    def color(self) -> Tensor:
        """Gray or RGB values ``[1 or 3, H, W]``, for :func:`to_float`."""
        return self.values[: 1 if len(self.values) < 3 else 3]

    @property
    def alpha(self) -> Tensor | None:
        """Alpha values ``[1, H, W]``, for :func:`to_float`, or None."""
        return self.values[-1:] if len(self.values) in (2, 4) else None

    def to_picture(self) -> Picture:
        """Convert to float tensors."""
        channels, colors = to_float(self.values), len(self.color)
        alpha = None if self.alpha is None else channels[colors:]
        return Picture(channels[:colors], alpha, self.values.dtype, self._restore)

    def with_pixels(self, index: Tensor, color: Tensor, alpha: Tensor | None = None) -> Any:
        """Make a picture of the kind that was opened, which differs from it at some pixels alone.

        Args:
            index: int64 ``[N]``, flat positions.
            color: ``[C, N]``, clamped to 0..1.
            alpha: ``[1, N]``; None keeps the picture's own.

        >>> open_raw(np.zeros((2, 3), np.uint8)).with_pixels(torch.tensor([4]), torch.ones(1, 1))
        array([[  0,   0,   0],
               [  0, 255,   0]], dtype=uint8)
        """
        out, width = self.values.clone(), self.values.shape[2]
        changed = color if alpha is None else torch.cat([color, alpha])
        new = _indexable(_from_float(changed[..., None], out.dtype)[..., 0])
        _indexable(out)[: len(new), index // width, index % width] = new
        return self._restore(out)

    def pixels(self, index: Tensor) -> Tensor:
        """Values in 0..1 at flat positions, float32 ``[C, N]``, alpha included."""
        width = self.values.shape[2]
        found = _indexable(self.values)[:, index // width, index % width].view(self.values.dtype)
        return to_float(found[..., None])[..., 0]


def open_picture(image: ImageLike, name: str = "image") -> Picture:
    """Convert a picture of any kind to float tensors.

    Args:
        image: a path; a :class:`Photo`; a Pillow image; an array ``(H, W)`` or ``(H, W, C)``; a tensor ``(C, H, W)``
            or ``(1, C, H, W)``. C is 1 (gray), 2 (gray and alpha), 3 (RGB) or 4 (RGBA). Values are uint8, uint16, or
            floats in 0..1. Files are turned upright as their orientation tag says; Pillow images are not.
        name: what error messages call it.

    Raises:
        ValueError, TypeError: if it is not such a picture.
        OSError: if a file cannot be read.

    >>> open_picture(torch.rand(4, 8, 9)).color.shape
    torch.Size([3, 8, 9])
    """
    return open_raw(image, name).to_picture()


def open_raw(image: ImageLike, name: str = "image") -> RawPicture:
    """Open a picture of any kind that :func:`open_picture` takes, without converting its values.

    Raises:
        ValueError, TypeError: if it is not such a picture.
        OSError: if a file cannot be read.
    """
    values, restore = _open(image, name)
    if values.dtype not in MAX_VALUE:
        low, high = (x.item() for x in values.aminmax())
        if not (low >= 0 and high <= 1):  # NaN fails this too
            raise ValueError(
                f"{name} must have float values in 0..1, got {low:.4g} to {high:.4g}: scale or clamp it first"
            )
    return RawPicture(values, restore)


def _open(image: ImageLike, name: str) -> tuple[Tensor, Restore]:
    """Values ``[C, H, W]``, C 1 to 4, and the way back."""
    if isinstance(image, str | os.PathLike):
        return _open_photo(Photo.open(image))
    if isinstance(image, Photo):
        return _open_photo(image)
    if isinstance(image, Image.Image):
        return _open_pillow(image, name)
    if isinstance(image, np.ndarray):
        return _open_array(image, name)
    if isinstance(image, Tensor):
        return _open_tensor(image, name)
    raise TypeError(f"{name} must be a path, a Photo, a Pillow image, an array or a tensor, got {type(image).__name__}")


def _open_photo(photo: Photo) -> tuple[Tensor, Restore]:
    metadata, kind = photo.metadata, photo.format  # not the photo: its pixels need not stay in memory
    return _channels_first(photo.pixels), lambda values: Photo(_channels_last(values), metadata, kind)


def _open_pillow(image: Image.Image, name: str) -> tuple[Tensor, Restore]:
    info: dict[str, Any] = {key: image.info[key] for key in PILLOW_METADATA if key in image.info}

    def restore(values: Tensor) -> Image.Image:
        pixels = _channels_last(values)
        if pixels.dtype == np.uint16 and pixels.ndim == 3:
            pixels = to_uint8(pixels)
            warnings.warn(
                "Pillow has no 16-bit color, so the result has 8 bits per channel: "
                "give a path, a psal.Photo, an array or a tensor to keep 16",
                stacklevel=4,  # the caller of the editing function
            )
        restored = Image.fromarray(pixels)
        restored.info.update(info)
        return restored

    return _channels_first(pillow_pixels(image, name)), restore


def _open_array(image: NDArray[Any], name: str) -> tuple[Tensor, Restore]:
    dtype, ndim = image.dtype, image.ndim
    if image.size == 0:
        raise ValueError(f"{name} must have at least one pixel, got shape {image.shape}")
    if ndim not in (2, 3) or (ndim == 3 and not 1 <= image.shape[2] <= 4):
        raise ValueError(f"{name} must be an array (H, W) or (H, W, C) with 1 to 4 channels, got {image.shape}")
    if dtype.kind not in "uf" or dtype.itemsize > (2 if dtype.kind == "u" else 8):
        raise TypeError(f"{name} must be uint8, uint16 or float, got {dtype}: convert it first")

    def restore(values: Tensor) -> NDArray[Any]:
        pixels = _channels_last(values).astype(dtype, copy=False)  # the byte order may differ
        return pixels[..., None] if ndim == 3 and pixels.ndim == 2 else pixels

    return _channels_first(image), restore


def _open_tensor(image: Tensor, name: str) -> tuple[Tensor, Restore]:
    device, batched = image.device, image.ndim == 4
    if image.numel() == 0:
        raise ValueError(f"{name} must have at least one pixel, got shape {tuple(image.shape)}")
    if image.ndim not in (3, 4) or (batched and len(image) != 1) or not 1 <= image.shape[-3] <= 4:
        raise ValueError(
            f"{name} must be a tensor (C, H, W) or (1, C, H, W) with 1 to 4 channels, got {tuple(image.shape)}"
        )
    if image.dtype not in MAX_VALUE and image.dtype not in FLOAT_TYPES:
        raise TypeError(f"{name} must be uint8, uint16 or float, got {image.dtype}: convert it first")

    def restore(values: Tensor) -> Tensor:
        moved = values.contiguous().to(device)
        return moved[None] if batched else moved

    values = image.detach().as_subclass(Tensor).cpu()
    return values[0] if batched else values, restore


def _channels_first(pixels: NDArray[Any]) -> Tensor:
    """``(H, W)`` or ``(H, W, C)`` to ``[C, H, W]``."""
    native = pixels.astype(pixels.dtype.newbyteorder("="), copy=True)
    return torch.from_numpy(native.reshape(*native.shape[:2], -1)).movedim(2, 0)


def _channels_last(values: Tensor) -> NDArray[Any]:
    """``[C, H, W]`` to ``(H, W, C)``, or to ``(H, W)`` if there is one channel."""
    pixels = values.movedim(0, 2).contiguous().numpy()
    return pixels[..., 0] if pixels.shape[2] == 1 else pixels


def _indexable(values: Tensor) -> Tensor:
    """View of a type that torch can index."""
    return values.view(torch.int16) if values.dtype == torch.uint16 else values


def to_float(values: Tensor) -> Tensor:
    """``[C, H, W]`` to float32 in 0..1, a copy, channel by channel to save memory."""
    scaled = torch.empty(values.shape, dtype=torch.float32)
    for channel, out in zip(values, scaled, strict=True):
        out.copy_(channel).div_(MAX_VALUE.get(values.dtype, 1))
    return scaled


def _from_float(channels: Tensor, dtype: torch.dtype) -> Tensor:
    """``[C, H, W]`` in 0..1 to the given type, clamped; the inverse of :func:`to_float`."""
    values = torch.empty(channels.shape, dtype=dtype)
    for channel, out in zip(channels, values, strict=True):
        clamped = channel.clamp(0, 1)
        if dtype in MAX_VALUE:  # exact for all 16-bit values, as float32 has 24 bits
            clamped = clamped.mul_(MAX_VALUE[dtype]).round_().to(torch.int32)
        out.copy_(clamped)
    return values
