"""Full attention: all pairs of query and key patches."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
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

METHODS = ("materialized", "chunked", "sdpa")


class FullAttention(PatchLayer):
    """Exact attention between all pairs of patches.

    Args:
        patch_size: odd side of the compared patches, an int or one per axis.
        stride: use every ``stride``-th key along each axis.
        similarity: "l2" (negative squared distance), "dot" or "cosine".
        temperature: softmax temperature.
        method: how it is computed; the result is the same up to rounding. "materialized" stores the matrix of all
            pairs, "chunked" a band of its rows at a time, and "sdpa" calls
            :func:`torch.nn.functional.scaled_dot_product_attention`. For "l2" that takes vectors with one more
            element: −‖q − k‖² = (2q, 1)·(k, −‖k‖²) − ‖q‖², and the last term is the same for all keys.
        padding_mode: values of a map beyond its border: "replicate", "reflect" or "zeros".

    Raises:
        ValueError, TypeError: if an argument is not as described.

    >>> import torch
    >>> image, reference = torch.rand(1, 3, 8, 8), torch.rand(1, 3, 9, 7)
    >>> FullAttention(patch_size=3)(image, reference, reference).shape
    torch.Size([1, 3, 8, 8])
    """

    def __init__(
        self,
        patch_size: int | Sequence[int] = 7,
        *,
        stride: int = 1,
        similarity: str = "l2",
        temperature: float = 1.0,
        method: str = "sdpa",
        padding_mode: str = "replicate",
    ) -> None:
        super().__init__(patch_size, padding_mode)
        checks.check_count("stride", stride, 1)
        checks.check_word("similarity", similarity, SIMILARITIES)
        checks.check_temperature(temperature)
        checks.check_word("method", method, METHODS)
        self.stride = stride
        self.similarity = similarity
        self.temperature = temperature
        self.method = method

    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        center = center_of(key, self.similarity)
        keys, bias = biased_keys(self.patches(key, center).all(self.stride), self.similarity, self.temperature)
        patches = self.patches(query, center)
        values = pixels_of(value[..., :: self.stride, :: self.stride])  # [B, M, Cv]
        if self.method == "chunked":
            return self._in_chunks(patches, keys, bias, values)
        queries = scaled_queries(patches.all(), self.similarity, self.temperature)  # [B, N, d]
        if self.method == "materialized":
            return map_of(torch.softmax(logits(queries, keys, bias), -1) @ values, query.shape[2:])
        return map_of(_by_sdpa(queries, keys, bias, values), query.shape[2:])

    def _in_chunks(self, patches: Patches, keys: Tensor, bias: Tensor | None, values: Tensor) -> Tensor:
        def attend(rows: slice) -> Tensor:
            queries = scaled_queries(patches.band(rows), self.similarity, self.temperature)
            return torch.softmax(logits(queries, keys, bias), -1) @ values

        bands = [recomputed(lambda rows=rows: attend(rows)) for rows in patches.bands(keys.shape[1] + keys.shape[2])]
        return map_of(torch.cat(bands, 1), (patches.height, patches.width))


def _by_sdpa(queries: Tensor, keys: Tensor, bias: Tensor | None, values: Tensor) -> Tensor:
    if bias is not None:
        queries, keys = F.pad(queries, (0, 1), value=1.0), torch.cat([keys, bias.mT], -1)
    channels = values.shape[-1]
    if queries.device.type == "cpu":  # its fused kernel needs query, key and value of one width
        wide = max(queries.shape[-1], channels)
        queries, keys, values = (F.pad(x, (0, wide - x.shape[-1])) for x in (queries, keys, values))
    attended = F.scaled_dot_product_attention(queries[:, None], keys[:, None], values[:, None], scale=1.0)
    return attended[:, 0, :, :channels]
