"""What these layers share: patches of a map as vectors, a part at a time, and the logits of pairs of them."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from psal import checks
from psal.ops import reference
from psal.ops.reference import NORM_EPSILON
from psal.options import PADDING_MODES

CHUNK_ELEMENTS = 2**23  # numbers of a matrix held at once: 32 MB in float32


class PatchLayer(nn.Module, ABC):
    """A layer that compares patches of 2-D maps; it has no weights.

    Args:
        patch_size: odd side of the patches, an int or two.
        padding_mode: how a map goes on beyond its border: "replicate", "reflect" or "zeros".
    """

    def __init__(self, patch_size: int | Sequence[int], padding_mode: str) -> None:
        super().__init__()
        self.patch_size = checks.check_patch_size(patch_size, 2)
        checks.check_word("padding_mode", padding_mode, PADDING_MODES)
        self.padding_mode = padding_mode

    def forward(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """Attend.

        Args:
            query: ``(B, C, H, W)``.
            key: ``(B, C, H', W')``.
            value: ``(B, Cv, H', W')``.

        Returns:
            ``(B, Cv, H, W)``, in the value's type.

        Raises:
            ValueError, TypeError: if the maps do not fit together.
        """
        for name, x in (("query", query), ("key", key), ("value", value)):
            checks.check_map(name, x)
            if x.ndim != 4:
                raise ValueError(f"{name} must be (B, C, H, W), got shape {tuple(x.shape)}")
        checks.check_same("key", key, "query", query, channels=True)
        checks.check_same("value", value, "key", key, channels=False)
        if key.shape[2:] != value.shape[2:]:
            raise ValueError(f"key and value must be on one grid, got {tuple(key.shape)} and {tuple(value.shape)}")
        working = torch.promote_types(torch.promote_types(query.dtype, key.dtype), value.dtype)
        if working in (torch.bfloat16, torch.float16):
            working = torch.float32
        with torch.autocast(query.device.type, enabled=False):
            out = self.attend(query.to(working), key.to(working), value.to(working))
        return out.to(value.dtype)

    @abstractmethod
    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """The attention itself, on maps of one type that fit together."""

    def patches(self, x: Tensor) -> "Patches":
        return Patches(x, self.patch_size, self.padding_mode)

    def extra_repr(self) -> str:
        """All arguments of the layer."""
        shown = {name: value for name, value in vars(self).items() if not name.startswith("_") and name != "training"}
        return ", ".join(f"{name}={value!r}" for name, value in shown.items())


class Patches:
    """The patches around all pixels of a map ``(B, C, H, W)``, as vectors of d = C · patch numbers."""

    def __init__(self, x: Tensor, patch_size: tuple[int, ...], padding_mode: str) -> None:
        self.height, self.width = x.shape[2:]
        self.dimension = x.shape[1] * patch_size[0] * patch_size[1]
        self._sides = patch_size
        self._padded = reference.pad(x, patch_size, padding_mode)

    def __len__(self) -> int:
        return self.height * self.width

    def block(self, rows: slice, columns: slice) -> Tensor:
        """Patches ``(B, n, d)`` around the pixels of a rectangle."""
        high, wide = (side - 1 for side in self._sides)
        part = self._padded[..., rows.start : rows.stop + high, columns.start : columns.stop + wide]
        return F.unfold(part, self._sides).mT

    def all(self, stride: int = 1) -> Tensor:
        """Patches ``(B, n, d)`` around every so manieth pixel in every so manieth row."""
        return F.unfold(self._padded, self._sides, stride=stride).mT

    def at(self, batch: Tensor, pixel: Tensor) -> Tensor:
        """Patches ``(n, d)`` around pixels ``(n,)`` of batch elements ``(n,)``; the numbers are in another order."""
        high, wide = self._padded.shape[2:]
        corner = (batch * high + pixel // self.width) * wide + pixel % self.width
        down, right = (torch.arange(side, device=pixel.device) for side in self._sides)
        inside = (down[:, None] * wide + right).flatten()
        pixels = self._padded.permute(0, 2, 3, 1).flatten(0, 2)  # [B · padded pixels, C]
        return pixels.index_select(0, (corner[:, None] + inside).flatten()).reshape(len(pixel), -1)

    def bands(self, row_elements: int) -> Iterator[slice]:
        """Slices of rows, as many at a time as keep ``row_elements`` numbers for each patch within bounds."""
        rows = max(1, CHUNK_ELEMENTS // (row_elements * self.width))
        for start in range(0, self.height, rows):
            yield slice(start, min(start + rows, self.height))

    def band(self, rows: slice) -> Tensor:
        """Patches ``(B, n, d)`` around the pixels of some rows."""
        return self.block(rows, slice(0, self.width))


def scaled_queries(patches: Tensor, similarity: str, temperature: float) -> Tensor:
    """Queries that, times :func:`biased_keys`, give score / temperature up to what is the same for all keys."""
    if similarity == "cosine":
        patches = F.normalize(patches, dim=-1, eps=NORM_EPSILON)
    return patches * ((2 if similarity == "l2" else 1) / temperature)


def biased_keys(patches: Tensor, similarity: str, temperature: float) -> tuple[Tensor, Tensor | None]:
    """Keys ``(B, M, d)`` and what is added to a key's products ``(B, 1, M)``: −‖q − k‖² = 2 q·k − ‖k‖² − ‖q‖²."""
    if similarity == "l2":
        return patches, patches.square().sum(-1)[:, None] / -temperature
    return (F.normalize(patches, dim=-1, eps=NORM_EPSILON) if similarity == "cosine" else patches), None


def logits(queries: Tensor, keys: Tensor, bias: Tensor | None) -> Tensor:
    """Logits ``(B, n, M)`` of all pairs, up to a constant for each query."""
    return queries @ keys.mT if bias is None else torch.baddbmm(bias, queries, keys.mT)


def pixels_of(value: Tensor) -> Tensor:
    """A map ``(B, C, H, W)`` as rows ``(B, H · W, C)``."""
    return value.flatten(2).mT


def map_of(rows: Tensor, grid: Sequence[int]) -> Tensor:
    """Rows ``(B, H · W, C)`` as a map ``(B, C, H, W)``."""
    return rows.mT.reshape(rows.shape[0], rows.shape[2], *grid)


def recomputed(function: Callable[..., Tensor], *inputs: Tensor) -> Tensor:
    """``function(*inputs)``; for backward nothing is kept of it, it runs again then."""
    if not torch.is_grad_enabled():
        return function(*inputs)
    out: Tensor = checkpoint(function, *inputs, use_reentrant=False, preserve_rng_state=False)
    return out
