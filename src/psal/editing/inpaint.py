"""Fill holes in a picture, with patches of the rest of it or by a trained network.

Patches: after Newson, Almansa, Gousseau and Pérez, "Non-Local Patch-Based Image Inpainting" (IPOL 2017), and Wexler,
Shechtman and Irani, "Space-Time Completion of Video" (2007). The steps are in :mod:`psal.editing.hole_filling`.
Network: :class:`psal.models.inpainting.Generator`.
"""

import os
from typing import Any, Literal, TypedDict, Unpack, overload

import torch
from torch import Tensor

from psal.checks import check_count
from psal.devices import choose_device
from psal.editing.hole_filling.coarse_to_fine import Filled, has_valid_key
from psal.editing.hole_filling.fill_request import FillRequest
from psal.editing.hole_filling.hole_geometry import PATCH_SIZE
from psal.editing.hole_filling.variants import fill_variants
from psal.editing.inpaint_network import fill_with_network
from psal.editing.mask_edges import check_edge, fade_edge, grow_mask
from psal.editing.network_choice import NetworkChoice, choose_network
from psal.editing.shift_map import ShiftMap
from psal.io.masks import open_mask, transparent_pixels
from psal.io.pictures import ImageLike, RawPicture, open_picture, open_raw
from psal.luminance import luminance
from psal.progress import Progress
from psal.seeds import check_seed, draw_seed


class InpaintKeywords(TypedDict, total=False):
    """Keywords of :func:`inpaint` that do not change the type of its result, for type checkers."""

    seed: int | None
    device: str | torch.device
    source_mask: ImageLike | None
    guide: ImageLike | None
    model: str
    weights: str | os.PathLike[str] | None
    attention: str
    invert: bool
    grow: int
    feather: int
    progress: Progress | None


@overload
def inpaint(
    image: ImageLike, mask: ImageLike | None, *,
    variants: None = ..., return_shifts: Literal[False] = ..., **keywords: Unpack[InpaintKeywords],
) -> Any: ...  # fmt: skip


@overload
def inpaint(
    image: ImageLike, mask: ImageLike | None, *,
    variants: None = ..., return_shifts: Literal[True], **keywords: Unpack[InpaintKeywords],
) -> tuple[Any, ShiftMap]: ...  # fmt: skip


@overload
def inpaint(
    image: ImageLike, mask: ImageLike | None, *,
    variants: int, return_shifts: Literal[False] = ..., **keywords: Unpack[InpaintKeywords],
) -> list[Any]: ...  # fmt: skip


@overload
def inpaint(
    image: ImageLike, mask: ImageLike | None, *,
    variants: int, return_shifts: Literal[True], **keywords: Unpack[InpaintKeywords],
) -> list[tuple[Any, ShiftMap]]: ...  # fmt: skip


def inpaint(
    image: ImageLike,
    mask: ImageLike | None,
    *,
    seed: int | None = None,
    device: str | torch.device = "cpu",
    source_mask: ImageLike | None = None,
    guide: ImageLike | None = None,
    model: str = "patches",
    weights: str | os.PathLike[str] | None = None,
    attention: str = "own",
    invert: bool = False,
    grow: int = 0,
    feather: int = 0,
    variants: int | None = None,
    return_shifts: bool = False,
    progress: Progress | None = None,
) -> Any:
    """Fill holes of any size and shape with patches of the rest of the picture, or by a network.

    Args:
        image: path, :class:`psal.Photo`, Pillow image, array or tensor; gray or RGB, with or without alpha.
        mask: any of these kinds, of the same size; white (or True) marks the hole. None takes the transparent pixels of
            ``image``, which become opaque.
        seed: of the search; None draws one from torch's generator.
        device: where the network runs: "cpu", "cuda", "cuda:1" and so on, or "auto" for a CUDA or ROCm device if
            there is one. Patches are filled on the CPU.
        source_mask: as ``mask``, white where patches may be taken from; None for everywhere. No pixel is copied from
            elsewhere.
        guide: a rough fill, of the same size and any of these kinds: what another program made, or a sketch. Its colors
            in the hole lead the search at coarse levels; all pixels still come from ``image``.
        model: "patches", or "network", which runs a trained network on the whole picture.
        weights: file of the network, written by ``psal train inpaint`` or by generative-inpainting-pytorch.
        attention: attention to put into the network: "own", the one it was trained with, "psal3", "contextual" or
            "contextual-materialized".
        invert: fill what is black in the mask.
        grow: pixels by which the hole is grown first.
        feather: pixels around the hole over which the fill fades into the picture.
        variants: how many fills to return, which differ in their sources; best first by the distance between the
            hole's patches and their sources. None for a single one, not in a list.
        return_shifts: also return where each pixel was copied from, for :func:`psal.apply_shifts`.
        progress: called with the fraction of the work that is done, 0..1.

    Returns:
        A picture of the same kind as ``image`` (a :class:`psal.Photo` for a path), bit for bit the same outside the
        hole, grown and feathered. A copy if there is no hole. With ``return_shifts``, a pair of it and a
        :class:`psal.ShiftMap`. With ``variants``, a list of such pictures or pairs.

    Raises:
        ValueError, TypeError: if an argument cannot be used, no patch is left that may be copied, or there is not
            enough memory for the network.

    >>> image = torch.rand(3, 40, 50)
    >>> mask = torch.zeros(40, 50, dtype=torch.bool)
    >>> mask[10:20, 15:30] = True
    >>> filled = inpaint(image, mask, seed=0)
    >>> filled[:, ~mask].equal(image[:, ~mask])
    True
    """
    check_seed(seed)
    check_edge("feather", feather)
    count = 1 if variants is None else check_count("variants", variants, 1)
    network = choose_network("inpaint", model, weights, attention)
    chosen = choose_device(device)
    if network is None and chosen.type != "cpu" and device != "auto":
        raise ValueError(f"device {str(device)!r} is for model 'network': patches are filled on the CPU")
    if network is not None and (source_mask is not None or guide is not None or return_shifts):
        raise ValueError("source_mask, guide and return_shifts are for model 'patches': a network copies no pixels")
    if network is not None and variants is not None:
        raise ValueError("variants are for model 'patches': a network has one result")
    picture = open_raw(image, "image")
    size = picture.values.shape[1], picture.values.shape[2]
    marked = transparent_pixels(picture, "image") if mask is None else mask
    hole = open_hole(marked, size, invert=invert, grow=grow)
    opacity = fade_edge(hole, feather) if feather else None  # as large as a channel, so not kept in vain
    hole = hole if opacity is None else opacity > 0
    sources = None if source_mask is None else ~hole & open_mask(source_mask, size, "source_mask")
    colors = None if guide is None else _open_guide(guide, picture)
    nothing = torch.empty(0, dtype=torch.int64)
    fills = [Filled(torch.empty(len(picture.color), 0, dtype=torch.float32), nothing, nothing)] * count
    if hole.any():
        request = FillRequest(picture.color, hole, int(draw_seed(seed)), sources, colors, progress)
        fills = _fill(request, network, chosen, count)
    results: list[Any] = []
    for filled in fills:
        old = picture.pixels(filled.target)
        shares = torch.ones_like(old[0]) if opacity is None else opacity.flatten()[filled.target]
        color = filled.color if opacity is None else torch.lerp(old[: len(filled.color)], filled.color, shares)
        alpha = torch.lerp(old[-1:], torch.ones_like(old[-1:]), shares) if mask is None else None
        out = picture.with_pixels(filled.target, color, alpha)
        shifts = ShiftMap(size, filled.target.numpy(), filled.source.numpy(), shares.numpy()) if return_shifts else None
        results.append((out, shifts) if return_shifts else out)
    return results[0] if variants is None else results


def _fill(request: FillRequest, network: NetworkChoice | None, device: torch.device, count: int) -> list[Filled]:
    """Fill a hole by patches, or by a network on a device, which copies no pixels.

    Raises:
        ValueError: if too little is known, or the network cannot be used.
    """
    if request.hole.all():
        raise ValueError("mask marks the whole image as hole: only the part to fill may be white")
    if network is not None:
        filled, hole = fill_with_network(request, network, device), request.hole
        target = torch.nonzero(hole.flatten())[:, 0]
        return [Filled(filled[:, hole], target, torch.full_like(target, -1))]
    _check_sources(request)
    return fill_variants(request, count)


def open_hole(
    mask: ImageLike, size: tuple[int, int], *, invert: bool = False, grow: int = 0, name: str = "mask"
) -> Tensor:
    """Hole that a mask marks, bool ``[H, W]``.

    Args:
        mask: white (or True) marks the hole.
        size: (H, W) of the picture.
        invert: black marks it.
        grow: pixels by which the hole is grown.
        name: what error messages call the mask.
    """
    check_edge("grow", grow)
    hole = open_mask(mask, size, name)
    return grow_mask(~hole if invert else hole, grow)


def _check_sources(request: FillRequest) -> None:
    """Check that at least one patch may be copied."""
    height, width = request.hole.shape
    sources = ~request.hole if request.sources is None else request.sources
    if min(height, width) < PATCH_SIZE:
        raise ValueError(f"image must be at least {PATCH_SIZE} × {PATCH_SIZE} pixels, got {width} × {height}")
    if has_valid_key(sources):
        return
    left = f"{int(sources.sum())} of {height * width} pixels but no such patch"
    if request.sources is not None:
        raise ValueError(
            f"source_mask must leave at least one patch of {PATCH_SIZE} × {PATCH_SIZE} pixels outside the hole, got "
            f"one that leaves {left}: mark a larger source"
        )
    raise ValueError(
        f"mask must leave at least one known patch of {PATCH_SIZE} × {PATCH_SIZE} pixels, got a mask that leaves "
        f"{left}: mark a smaller hole"
    )


def _open_guide(guide: ImageLike, picture: RawPicture) -> Tensor:
    """Colors of a guide with the channels of the picture, ``[C, H, W]``."""
    color = open_picture(guide, "guide").color
    if color.shape[1:] != picture.color.shape[1:]:
        (height, width), (own_height, own_width) = color.shape[1:], picture.color.shape[1:]
        raise ValueError(
            f"guide is {width} × {height} pixels and the picture {own_width} × {own_height}: "
            "they must have the same size"
        )
    return luminance(color) if len(picture.color) == 1 else color.expand_as(picture.color)
