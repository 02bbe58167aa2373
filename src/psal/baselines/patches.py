"""The baselines' base class, patches of a map as vectors, and logits of pairs of them."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from psal import checks
from psal.layers import AttentionLayer
from psal.ops.grid import NORM_EPSILON, pad
from psal.options import PADDING_MODES
from psal.precision import working_type

CHUNK_ELEMENTS = 2**23  # matrix elements held at once: 32 MB in float32


class PatchLayer(AttentionLayer, ABC):
    """Base class of layers that compare patches of 2-D maps; they have no weights.

    Args:
        patch_size: odd side of the patches, an int or one per axis.
        padding_mode: values of a map beyond its border: "replicate", "reflect" or "zeros".
    """

    def __init__(self, patch_size: int | Sequence[int], padding_mode: str) -> None:
        super().__init__()
        self.patch_size = checks.patch_sides(patch_size, 2)
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
        checks.check_images(query, key, value)
        working = working_type(query, key, value)
        with torch.autocast(query.device.type, enabled=False):
            out = self.attend(query.to(working), key.to(working), value.to(working))
        return out.to(value.dtype)

    @abstractmethod
    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """Compute the attention on checked maps of one type."""

    def patches(self, x: Tensor, center: Tensor | None = None) -> "Patches":
        return Patches(x, self.patch_size, self.padding_mode, center)

    def extra_repr(self) -> str:
        """Show all arguments of the layer."""
        shown = {name: value for name, value in vars(self).items() if not name.startswith("_") and name != "training"}
        return ", ".join(f"{name}={value!r}" for name, value in shown.items())


class Patches:
    """The patches around all pixels of a map ``(B, C, H, W)``, as vectors with d = C · patch elements.

    Where ``center`` ``(B, C, 1, 1)`` is given, it is subtracted from every pixel after padding.
    """

    def __init__(self, x: Tensor, patch_size: tuple[int, ...], padding_mode: str, center: Tensor | None) -> None:
        self.height, self.width = x.shape[2:]
        self.dimension = x.shape[1] * patch_size[0] * patch_size[1]
        self._sides = patch_size
        padded = pad(x, patch_size, padding_mode)
        self._padded = padded if center is None else padded - center

    def __len__(self) -> int:
        return self.height * self.width

    def block(self, rows: slice, columns: slice) -> Tensor:
        """Return the patches ``(B, n, d)`` around the pixels of a rectangle."""
        high, wide = (side - 1 for side in self._sides)
        part = self._padded[..., rows.start : rows.stop + high, columns.start : columns.stop + wide]
        return F.unfold(part, self._sides).mT

    def all(self, stride: int = 1) -> Tensor:
        """Return the patches ``(B, n, d)`` around every ``stride``-th pixel along each axis."""
        return F.unfold(self._padded, self._sides, stride=stride).mT

    def at(self, batch: Tensor, pixel: Tensor) -> Tensor:
        """Return the patches ``(n, d)`` around pixels ``(n,)`` of batch elements ``(n,)``, channels last."""
        high, wide = self._padded.shape[2:]
        corner = (batch * high + pixel // self.width) * wide + pixel % self.width
        down, right = (torch.arange(side, device=pixel.device) for side in self._sides)
        inside = (down[:, None] * wide + right).flatten()
        pixels = self._padded.permute(0, 2, 3, 1).flatten(0, 2)  # [B · padded pixels, C]
        return pixels.index_select(0, (corner[:, None] + inside).flatten()).reshape(len(pixel), -1)

    def bands(self, row_elements: int) -> Iterator[slice]:
        """Yield slices of rows, each so small that ``row_elements`` elements per patch stay below CHUNK_ELEMENTS."""
        rows = max(1, CHUNK_ELEMENTS // (row_elements * self.width))
        for start in range(0, self.height, rows):
            yield slice(start, min(start + rows, self.height))

    def band(self, rows: slice) -> Tensor:
        """Return the patches ``(B, n, d)`` around the pixels of some rows."""
        return self.block(rows, slice(0, self.width))


def scaled_queries(patches: Tensor, similarity: str, temperature: float) -> Tensor:
    """Scale queries so that :func:`logits` are score / temperature, up to a constant per query."""
    if similarity == "cosine":
        patches = F.normalize(patches, dim=-1, eps=NORM_EPSILON)
    return patches * ((2 if similarity == "l2" else 1) / temperature)


def biased_keys(patches: Tensor, similarity: str, temperature: float) -> tuple[Tensor, Tensor | None]:
    """Return keys ``(B, M, d)`` and the bias of their logits ``(B, 1, M)``: −‖q − k‖² = 2 q·k − ‖k‖² − ‖q‖²."""
    if similarity == "l2":
        return patches, patches.square().sum(-1)[:, None] / -temperature
    return (F.normalize(patches, dim=-1, eps=NORM_EPSILON) if similarity == "cosine" else patches), None


def logits(queries: Tensor, keys: Tensor, bias: Tensor | None) -> Tensor:
    """Return the logits ``(B, n, M)`` of all pairs, up to a constant per query."""
    return queries @ keys.mT if bias is None else torch.baddbmm(bias, queries, keys.mT)


def pixels_of(value: Tensor) -> Tensor:
    """Convert a map ``(B, C, H, W)`` to rows ``(B, H · W, C)``."""
    return value.flatten(2).mT


def map_of(rows: Tensor, grid: Sequence[int]) -> Tensor:
    """Convert rows ``(B, H · W, C)`` to a map ``(B, C, H, W)``."""
    return rows.mT.reshape(rows.shape[0], rows.shape[2], *grid)


def recomputed(function: Callable[..., Tensor], *inputs: Tensor) -> Tensor:
    """Call ``function(*inputs)``; backward runs it again, so no intermediate results are stored."""
    if not torch.is_grad_enabled():
        return function(*inputs)
    out: Tensor = checkpoint(function, *inputs, use_reentrant=False, preserve_rng_state=False)
    return out
