"""Local attention (Parmar et al. 2018): each query attends to the keys in a window around it."""

from collections.abc import Sequence

import torch
from torch import Tensor

from psal import checks
from psal.baselines.patches import (
    Patches,
    PatchLayer,
    biased_keys,
    logits,
    map_of,
    pixels_of,
    recomputed,
    scaled_queries,
)
from psal.ops.exact import center_of
from psal.options import SIMILARITIES

TILE = 16  # side of the square of queries processed at once


class LocalAttention(PatchLayer):
    """Exact attention inside a window around each query.

    The window of row i starts ``window // 2`` rows above row i and is clipped at the border; columns likewise. If the
    key's grid has another size, positions are scaled proportionally.

    Args:
        patch_size: odd side of the compared patches, an int or one per axis.
        window: side of the window, in pixels.
        similarity: "l2" (negative squared distance), "dot" or "cosine".
        temperature: softmax temperature.
        padding_mode: values of a map beyond its border: "replicate", "reflect" or "zeros".

    Raises:
        ValueError, TypeError: if an argument is not as described.

    >>> import torch
    >>> image, reference = torch.rand(1, 3, 8, 8), torch.rand(1, 3, 8, 8)
    >>> LocalAttention(patch_size=3, window=5)(image, reference, reference).shape
    torch.Size([1, 3, 8, 8])
    """

    def __init__(
        self,
        patch_size: int | Sequence[int] = 7,
        *,
        window: int = 50,
        similarity: str = "l2",
        temperature: float = 1.0,
        padding_mode: str = "replicate",
    ) -> None:
        super().__init__(patch_size, padding_mode)
        checks.check_count("window", window, 1)
        checks.check_word("similarity", similarity, SIMILARITIES)
        checks.check_temperature(temperature)
        self.window = window
        self.similarity = similarity
        self.temperature = temperature

    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        center = center_of(key, self.similarity)
        queries, keys = self.patches(query, center), self.patches(key, center)
        lines = []
        for top in range(0, queries.height, TILE):
            rows = slice(top, min(top + TILE, queries.height))
            tiles = []
            for left in range(0, queries.width, TILE):
                columns = slice(left, min(left + TILE, queries.width))
                tile = recomputed(lambda r=rows, c=columns: self._tile(queries, keys, value, r, c))
                tiles.append(map_of(tile, (rows.stop - top, columns.stop - left)))
            lines.append(torch.cat(tiles, -1))
        return torch.cat(lines, -2)

    def _tile(self, queries: Patches, keys: Patches, value: Tensor, rows: slice, columns: slice) -> Tensor:
        """Return the output ``(B, n, Cv)`` for the n queries of a rectangle."""
        key_rows, near_rows = self._windows(rows, queries.height, keys.height, value.device)
        key_columns, near_columns = self._windows(columns, queries.width, keys.width, value.device)
        near = near_rows[:, None, :, None] & near_columns[None, :, None, :]  # [rows, columns, key rows, key columns]
        near = near.flatten(2).flatten(0, 1)
        scaled = scaled_queries(queries.block(rows, columns), self.similarity, self.temperature)
        candidates, bias = biased_keys(keys.block(key_rows, key_columns), self.similarity, self.temperature)
        weights = torch.softmax(logits(scaled, candidates, bias).masked_fill(~near, -torch.inf), -1)
        return weights @ pixels_of(value[..., key_rows, key_columns])

    def _windows(self, part: slice, size: int, key_size: int, device: torch.device) -> tuple[slice, Tensor]:
        """Return, along one axis, the range of keys that some queries see, and which of them each query sees."""
        first = torch.arange(part.start, part.stop, device=device) * key_size // size - self.window // 2
        start = max(0, part.start * key_size // size - self.window // 2)
        stop = min(key_size, (part.stop - 1) * key_size // size - self.window // 2 + self.window)
        keys = torch.arange(start, stop, device=device)
        return slice(start, stop), (keys >= first[:, None]) & (keys < first[:, None] + self.window)
