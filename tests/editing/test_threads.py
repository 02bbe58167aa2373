"""The same seed gives the same bits on any number of threads.

torch divides work among threads from 32,768 elements on, so the pictures and holes here are larger than that.
"""

from collections.abc import Callable
from functools import cache

import pytest
import skimage.data
import torch
import torch.nn.functional as F
from support.holes import box_mask
from torch import Tensor

import psal

THREAD_COUNTS = (1, 2, 4)


@cache  # torch's bilinear interpolation of three channels depends on the number of threads
def texture(height: int, width: int, channels: int = 3, seed: int = 0) -> Tensor:
    """Noise of several scales, ``[C, H, W]`` in 0..1."""
    generator = torch.Generator().manual_seed(seed)
    octaves = [
        F.interpolate(torch.rand(1, channels, 2 + height // step, 2 + width // step, generator=generator),
                      (height, width), mode="bilinear")[0]
        for step in (40, 9, 2)
    ]  # fmt: skip
    return torch.stack(octaves).mean(0)


@cache
def photograph(height: int, width: int) -> Tensor:
    """Part of a photograph, ``[3, H, W]``: unlike noise it has nearly equal patches, and last bits decide."""
    return torch.from_numpy(skimage.data.astronaut()[:height, :width]).movedim(2, 0) / 255


def hints(luma: Tensor) -> Tensor:
    """Strokes of red and blue on a transparent layer."""
    color = luma.expand(3, -1, -1).clone()
    alpha = torch.zeros_like(luma)
    for column, channel in ((40, 0), (160, 2)):
        color[channel, 20:240, column : column + 9] += 0.3
        alpha[:, 20:240, column : column + 9] = 1
    return torch.cat([color, alpha]).clamp(0, 1)


EDITS: dict[str, Callable[[], Tensor]] = {
    "inpaint": lambda: psal.inpaint(photograph(397, 509), ~box_mask(397, 509, (38, 380, 71, 506)), seed=0),
    "outpaint": lambda: psal.outpaint(photograph(397, 509), left=71, right=3, top=38, bottom=17, seed=0),
    "colorize": lambda: psal.colorize(texture(541, 433, 1), texture(541, 433, seed=1), fade=False, seed=0),
    "hints": lambda: psal.colorize(
        texture(543, 437, 1), texture(541, 433, seed=1), hints=hints(texture(543, 437, 1)), fade=False, seed=0
    ),
    "reconstruct": lambda: psal.reconstruct(texture(263, 271), texture(255, 281, seed=1), seed=0),
    "upscale": lambda: psal.upscale(texture(171, 163), 2, seed=0),
    "upscale in two steps": lambda: psal.upscale(texture(171, 163), 2.7, seed=0),
}  # fmt: skip


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_same_bits_on_any_number_of_threads(edit: Callable[[], Tensor]) -> None:
    before = torch.get_num_threads()
    try:
        results = []
        for count in THREAD_COUNTS:
            torch.set_num_threads(count)
            results.append(edit())
    finally:
        torch.set_num_threads(before)
    for count, result in zip(THREAD_COUNTS[1:], results[1:], strict=True):
        assert result.equal(results[0]), f"{count} threads give other bits than one"
