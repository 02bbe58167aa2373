"""Fill another layer of a scene with the sources of a fill."""

import os
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from psal.editing.shift_map import ShiftMap
from psal.io.photo import Photo
from psal.io.pictures import ImageLike

SIGNED = {torch.uint16: torch.int16, torch.uint32: torch.int32, torch.uint64: torch.int64}  # torch copies these


def apply_shifts(shifts: ShiftMap | str | os.PathLike[str], image: ImageLike) -> Any:
    """Copy pixels as a fill did: depth, normals, roughness or infrared of the scene that was inpainted.

    A copied pixel equals its source bit for bit. Only where the fill was feathered are old and copied values mixed.

    Args:
        shifts: from ``psal.inpaint(…, return_shifts=True)``, or a file with one.
        image: layer of the same size: path, :class:`psal.Photo`, Pillow image, array ``(H, W)`` or ``(H, W, C)``, or
            tensor ``(…, H, W)``. Arrays, tensors and Pillow images may have any dtype and number of channels.

    Returns:
        A layer of the same kind (a :class:`psal.Photo` for a path).

    Raises:
        ValueError, TypeError: if the sizes differ, or an argument is not as described.

    >>> shifts = ShiftMap((2, 3), np.array([4]), np.array([2]), np.ones(1, np.float32))
    >>> apply_shifts(shifts, np.array([[1.5, 2.5, 3.5], [0, 0, 0]]))
    array([[1.5, 2.5, 3.5],
           [0. , 3.5, 0. ]])
    """
    if isinstance(shifts, str | os.PathLike):
        shifts = ShiftMap.open(shifts)
    if not isinstance(shifts, ShiftMap):
        raise TypeError(f"shifts must be a ShiftMap or the path of one, got {type(shifts).__name__}")
    if isinstance(image, str | os.PathLike):
        image = Photo.open(image)
    if isinstance(image, Photo):
        return image.with_pixels(_fill_array(shifts, image.pixels))
    if isinstance(image, Image.Image):
        return _fill_pillow(shifts, image)
    if isinstance(image, np.ndarray):
        return _fill_array(shifts, image)
    if isinstance(image, Tensor):
        return _fill_tensor(shifts, image)
    raise TypeError(f"image must be a path, a Photo, a Pillow image, an array or a tensor, got {type(image).__name__}")


def _fill_array(shifts: ShiftMap, image: NDArray[Any]) -> NDArray[Any]:
    if image.ndim not in (2, 3):
        raise ValueError(f"image must be an array (H, W) or (H, W, C), got shape {image.shape}")
    _check_size(shifts, image.shape[:2])
    out = image.copy(order="C")
    pixels = out.reshape(-1, *image.shape[2:])  # a view
    copied, mixed = pixels[shifts.source], shifts.opacity < 1
    if mixed.any():
        opacity = shifts.opacity[mixed].astype(np.float64).reshape(-1, *[1] * (image.ndim - 2))
        old, new = pixels[shifts.target[mixed]], copied[mixed]
        mean = np.where(opacity >= 0.5, new, old) if image.dtype == np.bool_ else old + opacity * (new * 1.0 - old)
        copied[mixed] = mean.round() if image.dtype.kind in "iu" else mean
    pixels[shifts.target] = copied
    return out


def _fill_tensor(shifts: ShiftMap, image: Tensor) -> Tensor:
    if image.ndim < 2:
        raise ValueError(f"image must be a tensor (…, H, W), got shape {tuple(image.shape)}")
    _check_size(shifts, tuple(image.shape[-2:]))
    target, source, opacity = (
        torch.from_numpy(x).to(image.device) for x in (shifts.target, shifts.source, shifts.opacity)
    )
    out = image.detach().clone(memory_format=torch.contiguous_format)
    pixels = out.flatten(-2).view(SIGNED.get(image.dtype, image.dtype))  # a view
    copied, mixed = pixels[..., source], opacity < 1
    if mixed.any():
        old, new = (x.view(image.dtype) for x in (pixels[..., target[mixed]], copied[..., mixed]))
        copied[..., mixed] = _mix(old, new, opacity[mixed]).view(pixels.dtype)
    pixels[..., target] = copied
    return out


def _mix(old: Tensor, new: Tensor, opacity: Tensor) -> Tensor:
    """Weighted mean in the type of both; booleans take the one with more weight."""
    if old.dtype == torch.bool:
        return new.where(opacity >= 0.5, old)
    wide = torch.complex128 if old.is_complex() else torch.float64
    mean = old.to(wide) + opacity * (new.to(wide) - old.to(wide))
    return (mean if old.is_floating_point() or old.is_complex() else mean.round()).to(old.dtype)


def _fill_pillow(shifts: ShiftMap, image: Image.Image) -> Image.Image:
    """Fill an image of any mode: it keeps its mode, palette and metadata."""
    filled = _fill_array(shifts, np.asarray(image))
    out = image.copy()
    if image.mode == "1":
        out.paste(Image.fromarray(filled))
    else:
        out.frombytes(filled.tobytes())
    return out


def _check_size(shifts: ShiftMap, size: tuple[int, ...]) -> None:
    if tuple(size) != shifts.size:
        raise ValueError(
            f"image is {size[1]} × {size[0]} pixels and the shift map {shifts.size[1]} × {shifts.size[0]}: "
            "they must have the same size"
        )
