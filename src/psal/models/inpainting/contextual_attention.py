"""Contextual attention (Yu et al. 2018), in chunks: nothing of the size of all pairs is held."""

import torch
import torch.nn.functional as F
from torch import Tensor

from psal import checks
from psal.baselines.patches import recomputed
from psal.layers import AttentionLayer
from psal.precision import working_type

RATE = 2  # queries and keys are every second pixel along each axis
PATCH_SIZE = 3  # of the patches that are compared
PASTED_SIZE = 2 * RATE  # of the patches that are pasted; each pixel is covered by four of them
MIN_NORM = 1e-4  # of a key patch
MAX_SCORES = 2**24  # of a chunk of queries with all keys: 67 MB in float32; some copies are held at once
METHODS = ("chunked", "materialized")


class ContextualAttention(AttentionLayer):
    """The attention of "Generative Image Inpainting with Contextual Attention" (Yu et al. 2018).

    Query and key are downsampled by 2, and 3 × 3 patches are compared by the dot product with the normalized key. The
    scores are fused over neighboring shifts: the score of a pair gains from the pairs that lie one step further along
    each axis in both maps. As its authors have it, the steps run over the flattened maps, from the end of a row or
    column to the start of the next. The softmax of all scores, times the 4 × 4 patches of the value around the keys, is
    pasted with a stride of 2.

    A key whose patch touches a pixel that ``key_mask`` excludes is never pasted. As its authors have it, such a key
    keeps a score of 0 in the softmax: where no key is left, the output is 0.

    Args:
        temperature: softmax temperature; the authors multiply by its inverse, 10.
        method: how it is computed; the result is the same up to rounding. "chunked" holds the scores of some queries at
            a time and computes them again in the backward pass; "materialized" holds those of all pairs.

    Raises:
        ValueError, TypeError: if an argument is not as described.

    >>> features = torch.rand(1, 8, 12, 16)
    >>> ContextualAttention()(features, features, features).shape
    torch.Size([1, 8, 12, 16])
    """

    def __init__(self, temperature: float = 0.1, *, method: str = "chunked") -> None:
        super().__init__()
        checks.check_word("method", method, METHODS)
        self.temperature = checks.check_temperature(temperature)
        self.method = method

    def forward(self, query: Tensor, key: Tensor, value: Tensor, key_mask: Tensor | None = None) -> Tensor:
        """Attend.

        Args:
            query: ``(B, C, H, W)``.
            key: ``(B, C, H', W')``.
            value: ``(B, Cv, H', W')``.
            key_mask: bool ``(B, 1, H', W')``, True where a pixel may be compared and pasted.

        Returns:
            ``(B, Cv, H, W)``, in the value's type.

        Raises:
            ValueError, TypeError: if the maps do not fit together.
        """
        checks.check_images(query, key, value)
        checks.check_mask("key_mask", key_mask, key)
        working = working_type(query, key, value)
        with torch.autocast(query.device.type, enabled=False):
            out = self._attend(query.to(working), key.to(working), value.to(working), key_mask)
        return out.to(value.dtype)

    def min_memory(self, channels: int, height: int, width: int) -> int:
        """Return the memory in bytes that self-attention on a map of this size needs at least, without gradients.

        >>> ContextualAttention(method="materialized").min_memory(128, 676, 825) / 1e9 > 150
        True
        """
        count = _even_size(height) * _even_size(width) // RATE**2  # of queries, and of keys
        patches = 2 * (PATCH_SIZE**2 + PASTED_SIZE**2) * channels * count
        scores = count**2 if self.method == "materialized" else min(count**2, max(MAX_SCORES, count))
        return 4 * (patches + 2 * scores)  # scores and weights

    def _attend(self, query: Tensor, key: Tensor, value: Tensor, key_mask: Tensor | None) -> Tensor:
        height, width = query.shape[2:]
        pairs = _Pairs(_even(query), _even(key), _even(value), key_mask, self.temperature)
        if self.method == "materialized":
            pasted = pairs.attend(0, pairs.query_count)
        else:
            chunk = max(1, MAX_SCORES // (len(query) * pairs.key_count))
            starts = range(0, pairs.query_count, chunk)
            pasted = torch.cat([recomputed(lambda at=at: pairs.attend(at, at + chunk)) for at in starts], 1)
        rows = pasted[:, pairs.to_rows]  # [B, N, Cv · 16]
        grid = _even_size(height), _even_size(width)
        out = F.fold(rows.mT, grid, PASTED_SIZE, stride=RATE, padding=1) / 4
        return out[..., :height, :width]

    def extra_repr(self) -> str:
        """Show all arguments of the layer."""
        return f"temperature={self.temperature:g}, method={self.method!r}"


class _Pairs:
    """Patches of queries, keys and values, and the attention of chunks of queries.

    Scores are fused twice: once with the patches of both maps in row-major order, once in column-major order. Chunks
    are ranges in column-major order.
    """

    def __init__(self, query: Tensor, key: Tensor, value: Tensor, key_mask: Tensor | None, temperature: float) -> None:
        queries, keys = query[..., ::RATE, ::RATE], key[..., ::RATE, ::RATE]
        self._queries = F.unfold(queries, PATCH_SIZE, padding=1).mT  # [B, N, C · 9]
        patches = F.unfold(keys, PATCH_SIZE, padding=1).mT  # [B, M, C · 9]
        self._keys = F.normalize(patches, dim=-1, eps=MIN_NORM)
        self._height, self._width = queries.shape[2:]
        self._key_order = _column_order(keys)
        self.to_rows = _column_order(queries.mT)  # from column-major to row-major order
        values = F.unfold(value, PASTED_SIZE, stride=RATE, padding=1).mT
        self._values = values[:, self._key_order]  # [B, M, Cv · 16]
        self._valid = None if key_mask is None else _valid_patches(key_mask, key.dtype)[..., self._key_order]
        self._temperature = temperature

    @property
    def query_count(self) -> int:
        return self._queries.shape[1]

    @property
    def key_count(self) -> int:
        return self._keys.shape[1]

    def attend(self, start: int, stop: int) -> Tensor:
        """Return the patches ``(B, n, Cv · 16)`` to paste at a range of queries, in column-major order."""
        scores = self._scores(start, min(stop, self.query_count)) / self._temperature
        if self._valid is None:
            return scores.softmax(-1) @ self._values
        return ((scores * self._valid).softmax(-1) * self._valid) @ self._values

    def _scores(self, start: int, stop: int) -> Tensor:
        """Return the fused scores ``(B, n, M)``, queries and keys in column-major order.

        The queries before and after the range are needed too, and for each of those, the ones before and after it in
        row-major order.
        """
        columns = range(start - 1, stop + 1)
        last = self.query_count - 1
        once = self._fused_along_rows([self._row_index(min(max(index, 0), last)) for index in columns])
        inside = [0 <= index <= last for index in columns]
        once = once[..., self._key_order] * self._tensor(inside)[:, None]  # [B, n + 2, M]
        count = stop - start
        return _sum_of_steps([once[:, step : step + count] for step in range(3)])

    def _fused_along_rows(self, rows: list[int]) -> Tensor:
        """Return the scores ``(B, n, M)`` of queries, fused once; queries and keys have row-major indices."""
        count = self.query_count
        needed = sorted({row + step for row in rows for step in (-1, 0, 1) if 0 <= row + step < count})
        position = {index: at for at, index in enumerate(needed)}
        scores = self._queries[:, self._tensor(needed)] @ self._keys.mT
        stepped = []
        for step in (-1, 0, 1):
            inside = self._tensor([0 <= row + step < count for row in rows])
            at = self._tensor([position.get(row + step, 0) for row in rows])
            stepped.append(scores[:, at] * inside[:, None])
        return _sum_of_steps(stepped)

    def _row_index(self, column_index: int) -> int:
        """Convert a query's column-major index to its row-major one."""
        return column_index % self._height * self._width + column_index // self._height

    def _tensor(self, values: list[int] | list[bool]) -> Tensor:
        return torch.tensor(values, device=self._queries.device)


def _sum_of_steps(scores: list[Tensor]) -> Tensor:
    """Sum the scores ``(B, n, M)`` of the queries one step before, at and one step after, with keys stepped likewise.

    Pairs beyond the first and last key count as 0.
    """
    before, at, after = scores
    fused = at.clone()
    fused[..., 1:] += before[..., :-1]
    fused[..., :-1] += after[..., 1:]
    return fused


def _column_order(x: Tensor) -> Tensor:
    """Return the row-major indices of a map's pixels in column-major order."""
    height, width = x.shape[2:]
    return torch.arange(height * width, device=x.device).view(height, width).T.flatten()


def _valid_patches(key_mask: Tensor, dtype: torch.dtype) -> Tensor:
    """Return 1 ``(B, 1, M)`` for key patches all of whose pixels are valid, also those between the sampled ones."""
    masked = F.max_pool2d((~key_mask).to(dtype), RATE, ceil_mode=True)
    return 1 - F.max_pool2d(masked, PATCH_SIZE, stride=1, padding=1).flatten(2)


def _even_size(size: int) -> int:
    return size + size % RATE


def _even(x: Tensor) -> Tensor:
    """Pad a map with zeros at its lower and right border to even sides."""
    return F.pad(x, (0, x.shape[3] % RATE, 0, x.shape[2] % RATE))
