"""Tensors as the kernels read them, and the constants that a kernel is compiled for."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from psal.ops import grid
from psal.options import PADDING_MODES, SIMILARITIES

MAX_CHANNEL_BLOCK = 16  # channels that a lane holds at once; 64 take 139 registers: results/gpu_offline.json
TILES = {1: (1, 1, 64), 2: (1, 8, 8), 3: (4, 4, 4)}  # pixels per program, by number of axes
INTERPRETED_TILES = {1: (1, 1, 256), 2: (1, 16, 16), 3: (4, 8, 8)}  # its time goes with programs, not with lanes
OPTIONS: dict[str, Any] = {"num_warps": 4, "enable_fp_fusion": True}
MAX_REGISTERS, MAX_LIMITED_NEIGHBORS = 96, 8  # more matches take more registers than that in any case
TYPES = {torch.float64: tl.float64}  # that sums have, by type of the map; float32 for all others

Sizes = tuple[int, int, int]


def three(sizes: Sequence[int]) -> Sizes:
    """Prepend ones: every grid has three axes here."""
    z, y, x = (1,) * (3 - len(sizes)) + tuple(sizes)
    return z, y, x


def tile_constants(dims: int) -> dict[str, Any]:
    """Return the tile of a grid with that many axes, as constants of a kernel."""
    tile = (INTERPRETED_TILES if triton.knobs.runtime.interpret else TILES)[dims]
    return {"DIMS": dims, **dict(zip(("TZ", "TY", "TX"), tile, strict=True))}


def search_options(constants: dict[str, Any], *, nvidia: bool = torch.version.hip is None) -> dict[str, Any]:
    """Return the launch options of a search with these constants.

    On sm_90, the compiler gives wide maps and more than 3 matches up to 128 registers. Limited to 96, a third more
    programs run at a time, and what does not fit is kept on the stack outside of the inner loop.
    """
    needs_limit = constants["C"] > MAX_CHANNEL_BLOCK or constants["K"] > 3
    if nvidia and needs_limit and constants["K"] <= MAX_LIMITED_NEIGHBORS:
        return {**OPTIONS, "maxnreg": MAX_REGISTERS}
    return OPTIONS


def tiles_over(sizes: Sequence[int], constants: dict[str, Any]) -> int:
    """Return how many tiles cover a grid."""
    z, y, x = three(sizes)
    return math.prod(-(-size // constants[name]) for name, size in (("TZ", z), ("TY", y), ("TX", x)))


def accumulator(*types: torch.dtype) -> torch.dtype:
    """Return the type that maps of these types are summed in: float64 if one of them is, else float32."""
    return torch.float64 if torch.float64 in types else torch.float32


def channels_last(x: Tensor) -> Tensor:
    """Copy a map ``(B, C, *S)`` to ``(B, *S, C')``, where C' is C filled up with zeros to whole channel blocks."""
    last = x.movedim(1, -1)
    missing = channel_blocks(x.shape[1]).count - x.shape[1]
    return torch.nn.functional.pad(last, (0, missing)) if missing else last.contiguous()


def channel_blocks(channels: int) -> "ChannelBlocks":
    """Return how channels are split: one block of a power of two, or several of the largest block."""
    block = min(1 << (channels - 1).bit_length(), MAX_CHANNEL_BLOCK)
    return ChannelBlocks(-(-channels // block) * block, block)


@dataclass(frozen=True)
class ChannelBlocks:
    """Channels of a map in memory, and how many of them a kernel reads at once; a power of two."""

    count: int
    size: int


@dataclass(frozen=True)
class PatchMaps:
    """Query and key of a search.

    Attributes:
        query, key: the maps, ``(B, C, *S)`` each.
        sides: of the patch, one per axis.
        similarity, padding_mode: words of :mod:`psal.options`.
    """

    query: Tensor
    key: Tensor
    sides: tuple[int, ...]
    similarity: str
    padding_mode: str

    @classmethod
    def of_op(
        cls, query: Tensor, key: Tensor, patch_size: Sequence[int], similarity: int, padding_mode: int
    ) -> "PatchMaps":
        """Make them from an op's arguments."""
        return cls(query, key, tuple(patch_size), SIMILARITIES[similarity], PADDING_MODES[padding_mode])

    @property
    def batch(self) -> int:
        return self.query.shape[0]

    @property
    def sq(self) -> Sizes:
        return three(self.query.shape[2:])

    @property
    def sk(self) -> Sizes:
        return three(self.key.shape[2:])

    @property
    def type(self) -> torch.dtype:
        """Type of scores and sums."""
        return accumulator(self.query.dtype)

    def pad(self, x: Tensor) -> Tensor:
        """Extend a map by half a patch on each side: ``(B, *(S + patch − 1), C')``."""
        return channels_last(grid.pad(x, self.sides, self.padding_mode))

    @cached_property
    def padded_query(self) -> Tensor:
        return self.pad(self.query)

    @cached_property
    def padded_key(self) -> Tensor:
        return self.pad(self.key)

    @cached_property
    def query_factor(self) -> Tensor:
        """1 / ‖patch‖ of every query, ``(B, N)``, for "cosine"; else a tensor that no kernel reads."""
        return self._inverse_norms(self.padded_query)

    @cached_property
    def key_factor(self) -> Tensor:
        """The same for every key."""
        return self._inverse_norms(self.padded_key)

    def _inverse_norms(self, padded: Tensor) -> Tensor:
        if self.similarity != "cosine":
            return padded
        return grid.inverse_norms(padded.movedim(-1, 1).to(self.type), self.sides).flatten(1)

    @property
    def constants(self) -> dict[str, Any]:
        """What kernels that compare patches are compiled for."""
        blocks = channel_blocks(self.query.shape[1])
        elements = max(math.prod(x.shape[1:]) for x in (self.padded_query, self.padded_key))
        return {
            **tile_constants(len(self.sides)),
            **dict(zip(("PZ", "PY", "PX"), three(self.sides), strict=True)),
            "C": blocks.count,
            "CB": blocks.size,
            "L2": self.similarity == "l2",
            "COSINE": self.similarity == "cosine",
            "WIDE": elements > 2**31 - 1,
            "TYPE": TYPES.get(self.query.dtype, tl.float32),
        }


def fold_border(x: Tensor, sides: Sequence[int], padding_mode: str) -> Tensor:
    """Add the border of a gradient ``(B, C, *(S + sides − 1))`` to the pixels that padding copied: ``(B, C, *S)``.

    One addition after the other, so that the result has the same bits in every run.
    """
    for axis, side in enumerate(sides, start=2):
        border, size = side // 2, x.shape[axis] - side + 1
        source = grid.padding_source(size, border, padding_mode, torch.device("cpu")).tolist()
        folded = x.narrow(axis, border, size).clone()
        for position in (*range(border), *range(border + size, size + 2 * border)):
            if source[position] >= 0:
                folded.select(axis, source[position]).add_(x.select(axis, position))
        x = folded
    return x
